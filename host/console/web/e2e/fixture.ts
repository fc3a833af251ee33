// Every test fails on a violation of the policy, an error or a warning in the browser's
// log, an uncaught error, or a request to another origin.
import { test as base, expect } from '@playwright/test'
import { AxeBuilder } from '@axe-core/playwright'

export const test = base.extend<{ allowed: RegExp[]; faults: string[]; axe: () => Promise<void> }>({
  allowed: [[], { option: true }],
  faults: [async ({ page, baseURL, allowed }, use) => {
    const faults: string[] = []
    page.on('console', (m) => { if (['error', 'warning'].includes(m.type())) faults.push(`${m.type()}: ${m.text()}`) })
    page.on('pageerror', (e) => faults.push(`uncaught: ${e.message}`))
    page.on('request', (r) => { if (/^(https?|wss?):/.test(r.url()) && new URL(r.url()).origin !== new URL(baseURL!).origin) faults.push(`foreign request: ${r.url()}`) })
    await page.addInitScript(() => addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`)))
    await use(faults)
    expect(faults.filter((f) => !allowed.some((a) => a.test(f)))).toEqual([])
  }, { auto: true }],
  axe: async ({ page }, use) => {
    const violations = async (axe: AxeBuilder) => (await axe.analyze()).violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target.join(' ')} ${n.failureSummary}`).join(', ')}`)
    const ink = () => page.evaluate(() => getComputedStyle(document.body).color)
    await use(async () => {
      expect(await violations(new AxeBuilder({ page }).withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']))).toEqual([])
      // Light and dark differ in nothing but the colours.
      const light = await ink()
      await page.emulateMedia({ colorScheme: 'dark' })
      expect(await ink()).not.toBe(light)
      expect(await violations(new AxeBuilder({ page }).withRules('color-contrast'))).toEqual([])
      await page.emulateMedia({ colorScheme: 'light' })
    })
  },
})
export { expect }
