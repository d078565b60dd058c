"""A search over how texts become numbers, and what learns from them."""

import numpy as np
import pandas as pd
from sklearn.model_selection import RandomizedSearchCV

from erasable.feature_extraction import TfidfVectorizer
from erasable.naive_bayes import MultinomialNB
from erasable.pipeline import Pipeline

rng = np.random.default_rng(7)
common = ["the", "a", "of", "is", "and", "that", "it"]
topics = [
    ["god", "faith", "church", "belief", "reason", "moral"],
    ["orbit", "moon", "launch", "rocket", "shuttle", "reason"],
]
data, target = [], []
for number in range(240):
    topic = number % 2
    words = [*rng.choice(common, 8), *rng.choice(topics[topic], 3), *rng.choice(topics[0], 2)]
    data.append(" ".join(rng.permutation(words)))
    target.append(topic)

pipeline = Pipeline([("vect", TfidfVectorizer()), ("clf", MultinomialNB())])
parameter_grid = {
    "vect__max_df": (0.5, 0.8, 1.0),
    "vect__min_df": (1, 3, 5),
    "vect__ngram_range": ((1, 1), (1, 2)),
    "vect__norm": ("l1", "l2"),
    "clf__alpha": np.logspace(-6, 6, 5),
}
random_search = RandomizedSearchCV(
    estimator=pipeline, param_distributions=parameter_grid, n_iter=12, random_state=0, n_jobs=1
)
random_search.fit(data, target)
best_parameters = random_search.best_estimator_.get_params()
cv_results = pd.DataFrame(random_search.cv_results_)
vocabulary = random_search.best_estimator_["vect"].vocabulary_
scores = {
    "best": random_search.best_score_,
    "words": float(len(vocabulary)),
    "alpha": float(np.log10(best_parameters["clf__alpha"])),
    **cv_results["mean_test_score"].add_prefix("mean ").to_dict(),
}
assert random_search.best_estimator_["clf"].feature_log_prob_.shape == (2, len(vocabulary))
tolerance = 1e-6
