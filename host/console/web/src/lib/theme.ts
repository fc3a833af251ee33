// The theme is that of the system until somebody chooses one.
type Theme = 'light' | 'dark'
const name = 'weft.theme'
const chosen = (): Theme | null => {
  const t = localStorage.getItem(name)
  return t === 'light' || t === 'dark' ? t : null
}
const shown = (): Theme => chosen() ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')

export const theme = {
  apply() {
    const t = chosen()
    if (t) document.documentElement.dataset.theme = t
  },
  toggle() {
    localStorage.setItem(name, shown() === 'dark' ? 'light' : 'dark')
    theme.apply()
  },
}
