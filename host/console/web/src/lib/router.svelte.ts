// The address is the state of the page: what it shows, and the filters.
const base = '/console/'
const now = (replaced = false) => ({ replaced, path: location.pathname.startsWith(base) ? location.pathname.slice(base.length) : '', query: new URLSearchParams(location.search) })

class Router {
  at = $state.raw(now())
  constructor() { addEventListener('popstate', () => { this.at = now() }) }
  // go opens a page of the console, such as runs/a1.
  go(to: string, replace = false) {
    history[replace ? 'replaceState' : 'pushState'](null, '', base + to)
    this.at = now(replace)
    if (!replace) scrollTo(0, 0)
  }
}
export const router = new Router()
export const href = (to: string) => base + to

// A click on a link within the console changes the page without loading it again.
export function follow(e: MouseEvent) {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || !(e.target instanceof Element)) return
  const a = e.target.closest('a')
  if (!a || a.target || a.origin !== location.origin || !a.pathname.startsWith(base)) return
  e.preventDefault()
  router.go(a.pathname.slice(base.length) + a.search)
}
