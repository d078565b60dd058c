"""Parts that estimators share.

``tape`` is randomness keyed by record, ``grid`` and ``moments`` are sums without order,
``records`` are rows that models share and erase, ``estimator`` is the base that ties them to
scikit-learn. `core` imports no other package of erasable. Import from the modules.
"""

__all__: list[str] = []
