"""The events and the state of the scenes."""

import weft
from weft import BaseModel, Event


class StartEvent(weft.StartEvent):
    what: str
    n: int = 0
    text: str = ""


class CallEvent(Event):
    what: str
    n: int
    text: str


class WorkEvent(Event):
    fail: bool


class FragileEvent(Event):
    text: str


class ItemEvent(Event):
    name: str


class BoxEvent(ItemEvent):
    size: int


class LeftEvent(Event):
    n: int


class RightEvent(Event):
    text: str


class DoneEvent(Event):
    pass


class ShownEvent(Event):
    text: str


class TickEvent(Event):
    n: int


class LoudTickEvent(TickEvent):
    text: str


class ListenEvent(Event):
    pass


class InputRequiredEvent(weft.InputRequiredEvent):
    prefix: str


class HumanResponseEvent(weft.HumanResponseEvent):
    role: str = "manager"
    approved: bool


class FanEvent(Event):
    n: int
    text: str


class NestEvent(Event):
    n: int


class DealEvent(Event):
    n: int


class JoinEvent(Event):
    n: int
    text: str


class PartEvent(Event):
    i: int
    text: str


class PieceEvent(Event):
    i: int


class RowEvent(Event):
    row: int
    n: int


class CellEvent(Event):
    v: int


class SumEvent(Event):
    sum: int


class CardEvent(Event):
    v: int


class SunEvent(Event):
    n: int


class MoonEvent(Event):
    text: str


class State(BaseModel):
    count: int
    log: list[str]
