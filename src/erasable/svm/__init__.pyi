from ._linear import LinearSVC, LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]
