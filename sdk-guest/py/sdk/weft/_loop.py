"""The event loop of a step. Nothing happens outside of the step while it runs: the clock moves to the next timer once nothing else is
left to do."""

import collections
import heapq
import time

import _weft  # noqa: F401

from .errors import WeftError

_wait = time.sleep  # moves the invocation's clock


def drive(name, coroutine):
    """Runs a coroutine that does not use asyncio to its end."""
    try:
        coroutine.send(None)
    except StopIteration as e:
        return e.value
    coroutine.close()
    raise stuck(name)


def stuck(name):
    return WeftError(f"step {name} waits for something that nothing in the step brings about", code="failed_precondition")


def make():
    """Returns the class of the loop. It is made when the author's code imports asyncio."""
    import asyncio
    from asyncio import events, tasks

    class Loop(asyncio.AbstractEventLoop):
        def __init__(self):
            self._ready = collections.deque()
            self._timers = []
            self._count = 0
            self._failures = []
            self._tasks = 0

        # ---- what asyncio calls

        def time(self):
            return time.monotonic()

        def call_soon(self, callback, *args, context=None):
            handle = events.Handle(callback, args, self, context)
            self._ready.append(handle)
            return handle

        call_soon_threadsafe = call_soon

        def call_later(self, delay, callback, *args, context=None):
            return self.call_at(self.time() + max(delay, 0), callback, *args, context=context)

        def call_at(self, when, callback, *args, context=None):
            timer = events.TimerHandle(when, callback, args, self, context)
            self._count += 1
            heapq.heappush(self._timers, (when, self._count, timer))
            timer._scheduled = True
            return timer

        def _timer_handle_cancelled(self, timer):
            pass

        def create_future(self):
            return asyncio.Future(loop=self)

        def create_task(self, coroutine, *, name=None, context=None):
            self._tasks += 1
            task = tasks.Task(coroutine, loop=self, name=name) if context is None else tasks.Task(coroutine, loop=self, name=name, context=context)
            return task

        def get_task_factory(self):
            return None

        def run_in_executor(self, executor, func, *args):
            future = self.create_future()
            try:
                future.set_result(func(*args))
            except Exception as e:  # noqa: BLE001
                future.set_exception(e)
            return future

        def get_debug(self):
            return False

        def is_running(self):
            return True

        def is_closed(self):
            return False

        def call_exception_handler(self, context):
            self._failures.append(context)

        async def shutdown_asyncgens(self):
            pass

        # ---- running

        def _turn(self):
            """Runs what is ready, or moves the clock to the next timer. Returns False if there is neither."""
            while self._timers and (self._timers[0][2].cancelled() or self._timers[0][0] <= self.time()):
                timer = heapq.heappop(self._timers)[2]
                if not timer.cancelled():
                    self._ready.append(timer)
            if not self._ready:
                if not self._timers:
                    return False
                _wait(max(self._timers[0][0] - self.time(), 1e-9))
                return True
            for _ in range(len(self._ready)):
                handle = self._ready.popleft()
                if not handle._cancelled:
                    handle._run()
            return True

        def run(self, name, coroutine):
            events._set_running_loop(self)
            try:
                task = self.create_task(coroutine)
                while not task.done():
                    if not self._turn():
                        task.cancel()
                        self._turn()
                        raise stuck(name)
                self._end()
                return task.result()
            finally:
                events._set_running_loop(None)

        def _end(self):
            """Cancels tasks that are left, as asyncio.run does."""
            if self._tasks == 1:
                return
            left = tasks.all_tasks(self)
            for task in left:
                task.cancel()
            while left and self._turn():
                pass
    return Loop
