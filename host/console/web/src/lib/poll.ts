// poll calls read at once and then again each time that the last answer is some seconds
// old, while the tab is shown. It returns a function that ends it.
export function poll(read: (signal: AbortSignal) => Promise<void>, seconds = 2): () => void {
  const ended = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  let wait = seconds
  const turn = async () => {
    timer = undefined
    if (document.hidden) return // visibilitychange begins again
    try { await read(ended.signal); wait = seconds } catch { wait = Math.min(wait * 2, 30) }
    if (!ended.signal.aborted) timer = setTimeout(turn, wait * 1000)
  }
  const shown = () => { if (!document.hidden && timer === undefined && !ended.signal.aborted) void turn() }
  document.addEventListener('visibilitychange', shown)
  void turn()
  return () => { ended.abort(); clearTimeout(timer); document.removeEventListener('visibilitychange', shown) }
}
