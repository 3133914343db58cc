"""What all settings have in common."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

# Limits far above any use, so that a slip of the finger fills no memory and overflows no timer.
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(le=1_000_000)]


class ConfigError(Exception):
    """Bad input from a person: the text is one clear sentence."""


class Model(BaseModel):
    # No infinity and no NaN: neither JSON nor a timer can hold them.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """`users = true` is a slip; pydantic would take it for 1."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation in (int, float):
            raise ValueError("a number is wanted here, not true or false")
        return value
