"""A simulated engine as an HTTP server: routes, the clock, and who is told what the scheduler decides."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from dataclasses import dataclass, field, replace

import orjson

from loadgen.sim import llamacpp_pages, vllm_pages
from loadgen.sim.answering import Answering
from loadgen.sim.connection import Connection, HttpRequest
from loadgen.sim.errors import Refusal, fault_status, llama_error, loading, vllm_error
from loadgen.sim.faults import FaultError, Plan, make_plan
from loadgen.sim.llamacpp import LlamaDialect
from loadgen.sim.model import Constants, Job, Scheduler
from loadgen.sim.output import Output
from loadgen.sim.pages import Page, View
from loadgen.sim.presets import DEFAULT_PRESET, PRESETS
from loadgen.sim.request import GenRequest, load_json, parse
from loadgen.sim.text import generate
from loadgen.sim.truthlog import Truth, TruthLog
from loadgen.sim.vllm import VllmDialect
from loadgen.sim.wire import Answer, Choice

MODELS = {"vllm": "Qwen3-8B-FP8", "llamacpp": "Qwen3-8B-Q4_K_M"}
COMPLETIONS = {"/v1/chat/completions": True, "/v1/completions": False}
_LLAMA_ALIASES = {"/chat/completions": "/v1/chat/completions", "/completions": "/v1/completions"}


@dataclass
class Options:
    """What one simulated engine is to be. `constants` is the preset with the person's changes."""

    kind: str = "vllm"
    host: str = "127.0.0.1"
    port: int = 0
    preset: str = ""
    constants: Constants | None = None
    speed: float = 1.0
    model: str = ""
    loading_s: float = 0.0
    ping_s: float = 30.0
    faults: list[tuple[str, str, float]] = field(default_factory=list)
    seed: int = 0
    odd_share: float = 0.02
    log: str | None = None


class Server:
    """One engine on one port."""

    def __init__(self, options: Options) -> None:
        o = options
        self.options = o
        preset = o.preset or DEFAULT_PRESET[o.kind]
        constants = replace(o.constants or PRESETS[preset], kind=o.kind)
        constants = replace(constants, context=min(constants.context, constants.kv_tokens))
        self.constants = constants.at_speed(o.speed)
        self.scheduler = Scheduler(self.constants)
        self.dialect = VllmDialect() if o.kind == "vllm" else LlamaDialect()
        self.view = View(self.scheduler, o.model or MODELS[o.kind], preset, o.speed, int(time.time()))
        self.connections: set[Connection] = set()
        self._log = TruthLog(o.log)
        self._rng = random.Random(o.seed)
        self._ready_at = 0.0
        self._answers: dict[Job, Answering] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._listener: asyncio.Server | None = None
        self.port = o.port

    @property
    def url(self) -> str:
        host = f"[{self.options.host}]" if ":" in self.options.host else self.options.host
        return f"http://{host}:{self.port}"

    async def start(self) -> None:
        """Bind and listen; OSError when the port is taken.

        While it loads its model, llama-server answers 503; vLLM does not listen yet.
        """
        o = self.options
        family, _, _, _, address = socket.getaddrinfo(o.host, o.port, type=socket.SOCK_STREAM)[0]
        # The protocol is named, since only then asyncio turns Nagle off: tokens must not wait for an ACK.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
        except OSError:
            sock.close()
            raise
        self.port = sock.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._ready_at = time.monotonic() + o.loading_s
        if o.kind == "vllm" and o.loading_s:
            self._task = loop.create_task(self._listen_later(sock, o.loading_s))
        else:
            await self._listen(sock)

    async def _listen(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: Connection(self), sock=sock, backlog=4096)

    async def _listen_later(self, sock: socket.socket, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._listen(sock)

    async def stop(self) -> None:
        """Close everything; answers under way are logged as open."""
        if self._listener is not None:
            self._listener.close()
        if self._timer is not None:
            self._timer.cancel()
        for answering in dict.fromkeys(self._answers.values()):
            if not answering.over:
                self._log.write(answering.truth)
        self._answers.clear()
        for c in list(self.connections):
            c.answering = None
            c.transport.abort()
        self._log.close()

    # Requests

    def handle(self, c: Connection, r: HttpRequest) -> None:
        """Answer one request, now or as the scheduler decides."""
        kind = self.options.kind
        path = r.path
        if kind == "llamacpp":
            # llama-server takes HTTP/1.0 for 1.1
            r.keep_alive = "close" not in r.headers.get("connection", "").lower()
            path = _LLAMA_ALIASES.get(path, path)
            if time.monotonic() < self._ready_at:
                return self._error(c, r, loading())
        try:
            if path in COMPLETIONS and r.method == "POST":
                return self._complete(c, r, COMPLETIONS[path])
            page = self._page(path, r)
        except Refusal as e:
            return self._error(c, r, e)
        if page is None:
            return self._not_found(c, r, path)
        self._write(c, self._page_head(page, r), page.body, r.keep_alive)

    def _page(self, path: str, r: HttpRequest) -> Page | None:
        vllm = self.options.kind == "vllm"
        gets = vllm_pages.GET if vllm else llamacpp_pages.GET
        posts = vllm_pages.POST if vllm else llamacpp_pages.POST
        if r.method == "GET" and path in gets:
            return gets[path](self.view)
        if r.method == "POST" and path in posts:
            try:
                return posts[path](load_json(self.options.kind, r.body), self.view)
            except (TypeError, ValueError, AttributeError) as e:  # a value of another type than it should be
                raise (vllm_error if vllm else llama_error)(400, f"bad request: {e}") from None
        return None

    def _page_head(self, page: Page, r: HttpRequest) -> bytes:
        close, n = not r.keep_alive, len(page.body)
        if isinstance(self.dialect, VllmDialect):
            kind = None if page.empty else page.content_type or "application/json"
            return self.dialect.head(200, stream=False, close=close, length=n, content_type=kind)
        return self.dialect.head(
            200,
            stream=False,
            close=close,
            length=n,
            content_type=page.content_type or "application/json; charset=utf-8",
            process_start=page.process_start,
        )

    def _not_found(self, c: Connection, r: HttpRequest, path: str) -> None:
        if isinstance(self.dialect, LlamaDialect):
            body = {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}
            return self._error(c, r, Refusal(404, body))
        posts = {*COMPLETIONS, *vllm_pages.POST}
        if path in posts or path in vllm_pages.GET:
            allow = "POST" if path in posts else "GET"
            body_bytes = b'{"detail":"Method Not Allowed"}'
            head = self.dialect.head(
                405, stream=False, close=not r.keep_alive, length=len(body_bytes), allow=allow
            )
            return self._write(c, head, body_bytes, r.keep_alive)
        return self._error(c, r, Refusal(404, {"detail": "Not Found"}))

    def _error(self, c: Connection, r: HttpRequest, refusal: Refusal) -> None:
        body = orjson.dumps(refusal.body)
        keep = r.keep_alive and self.options.kind == "vllm"
        head = self.dialect.head(refusal.status, stream=False, close=not keep, length=len(body))
        self._write(c, head, body, keep)

    def bad_request(self, c: Connection) -> None:
        """What came was not HTTP."""
        head = self.dialect.head(400, stream=False, close=True, length=0)
        self._write(c, head, b"", False)

    def _write(self, c: Connection, head: bytes, body: bytes, keep: bool) -> None:
        c.transport.write(head + body)
        c.answered(keep)

    # Completions

    def _complete(self, c: Connection, r: HttpRequest, chat: bool) -> None:
        o = self.options
        truth = Truth(o.kind, r.wall_ns, r.mono_ns)
        try:
            plan = make_plan(o.faults, r.headers.get("x-sim-fault", ""), self._rng)
            truth.faults = plan.names
            if plan.status:
                raise fault_status(o.kind, plan.status)
            request = parse(
                o.kind,
                r.body,
                chat=chat,
                model=self.view.model,
                context=self.constants.context,
                content_type=r.headers.get("content-type", ""),
                request_id=r.headers.get("x-request-id"),
            )
        except (Refusal, FaultError) as e:
            refusal = (
                e if isinstance(e, Refusal) else Refusal(400, {"error": {"message": str(e), "code": 400}})
            )
            truth.status = refusal.status
            truth.outcome = "fault" if truth.faults else "refused"
            truth.head(time.monotonic_ns())
            self._log.write(truth)
            return self._error(c, r, refusal)
        answer = self._answer(request, plan)
        truth.id = answer.id
        truth.stream = request.stream
        truth.prompt_tokens = len(request.prompt)
        answering = Answering(
            dialect=self.dialect,
            answer=answer,
            plan=plan,
            output=Output(c.transport),
            truth=truth,
            counters=self.view.counters,
            close=not r.keep_alive,
            ended=lambda keep: self._ended(c, answering, keep),
            cancel=self._cancel,
            rng=random.Random(self._rng.random()),
            ping_s=o.ping_s if o.kind == "llamacpp" else 0.0,
        )
        c.answering = answering
        self.view.load += 1
        for choice in answer.choices:
            if choice.job.output:
                self._answers[choice.job] = answering
                self.scheduler.submit(choice.job, r.mono_ns / 1e9)
        answering.begin()
        self._pump()

    def _answer(self, request: GenRequest, plan: Plan) -> Answer:
        o = self.options
        choices: list[Choice] = []
        for i in range(request.n):
            output = generate(
                request.prompt,
                request.max_tokens,
                choice=i,
                seed=request.seed ^ o.seed,
                ignore_eos=request.ignore_eos,
                min_tokens=request.min_tokens,
                odd_share=0.6 if plan.split_utf8 else o.odd_share,
                tricky=plan.tricky,
            )
            leader = choices[0].job if choices else None
            job = Job(request.prompt, tuple(output), reuse=request.reuse, follows=leader)
            reasoning = plan.reasoning or (len(output) // 2 if request.thinking else 0)
            choices.append(Choice(i, job, reasoning_until=reasoning))
        answer_id = self.dialect.new_id(request)
        return Answer(request, answer_id, int(time.time()), self.view.model, choices, plan.tools)

    def _cancel(self, job: Job) -> None:
        self._answers.pop(job, None)
        self.scheduler.cancel(job)

    def _ended(self, c: Connection, answering: Answering, keep: bool | None) -> None:
        self.view.load -= 1
        for choice in answering.answer.choices:
            self._answers.pop(choice.job, None)
        self._log.write(answering.truth)
        c.answered(keep)

    # The clock

    def _pump(self) -> None:
        """Everything that is due now goes out; wake again when the next thing is due.

        Due times are absolute: being late once delays nothing that follows.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for event in self.scheduler.advance(time.monotonic()):
            answering = self._answers.get(event.job)
            if answering is not None:
                answering.on_event(event)
        due = self.scheduler.next_due()
        if due is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._pump)
