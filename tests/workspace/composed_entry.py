"""A function that trains a composition of which earlier versions learned a wrong model."""

from __future__ import annotations

from typing import Any

from erasable.compose import ColumnTransformer
from erasable.linear_model import LogisticRegression
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler


def train(data: Any) -> Any:
    frame = data.to_pandas().set_index("visit")
    turned = ColumnTransformer([("turned", MinMaxScaler(), ["dose", "age"])])
    model = make_pipeline(turned, StandardScaler(), LogisticRegression())
    return model.fit(frame[["age", "dose"]], frame["sick"])
