// Many runs and a long journal, in a store that was made for it. Rows, nodes and CPU time
// are bounded, and not the time that passes, so that a busy machine does not decide.
import type { Page } from '@playwright/test'
import { expect, test } from './fixture'

test.use({ baseURL: process.env.WEFT_SCALE_URL! })

// meter returns what the page uses: CPU seconds of its thread, nodes, and megabytes of values.
async function meter(page: Page) {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' })
  const read = async () => new Map((await cdp.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]))
  return {
    // cpu is what the page has used while it did something.
    async cpu(act: () => Promise<unknown>) {
      const before = (await read()).get('TaskDuration')!
      await act()
      return (await read()).get('TaskDuration')! - before
    },
    // loaded is what it has used since its process began: another document may have another one.
    async loaded(act: () => Promise<unknown>) {
      await act()
      return (await read()).get('TaskDuration')!
    },
    nodes: () => page.evaluate(() => document.querySelectorAll('*').length),
    async heap() {
      await cdp.send('HeapProfiler.collectGarbage')
      return (await read()).get('JSHeapUsedSize')! / 1e6
    },
  }
}

test('100,000 runs are listed, filtered and paged through within bounds', async ({ page, request }) => {
  const { counts } = (await (await request.get('/runs/counts')).json()) as { counts: { runs: number }[] }
  expect(counts.reduce((n, c) => n + c.runs, 0)).toBeGreaterThanOrEqual(100_000)
  const m = await meter(page)
  const rows = page.locator('tbody tr')
  const spent: Record<string, number> = {}
  spent.first = await m.loaded(async () => { await page.goto('/console/'); await expect(rows).toHaveCount(100) })
  for (let i = 0; i < 8; i++) {
    const last = await rows.last().innerText()
    spent[`older ${i}`] = await m.cpu(async () => { await page.getByRole('button', { name: 'Show older runs' }).click(); await expect(rows.last()).not.toHaveText(last) })
    expect(await rows.count()).toBeLessThanOrEqual(300)
  }
  expect(await m.nodes()).toBeLessThan(6000)
  spent.filtered = await m.cpu(async () => { await page.getByLabel('Workflow').selectOption('approval'); await expect(rows).toHaveCount(1) })
  await page.goto('/console/?phase=completed&workflow=flow3')
  await expect(rows.first()).toContainText('flow3')
  spent.found = await m.cpu(async () => { await page.getByLabel('Beginning of a run id').fill('r99914'); await page.keyboard.press('Enter'); await expect(rows).toHaveCount(1) })
  expect(await m.heap()).toBeLessThan(60)
  test.info().annotations.push({ type: 'CPU seconds', description: JSON.stringify(spent) })
  for (const [what, s] of Object.entries(spent)) expect(s, what).toBeLessThan(1)
})

test('a journal of 20,000 entries is walked within bounds, from any of its entries', async ({ page, request }) => {
  const newest = ((await (await request.get('/runs/long/journal?order=desc&limit=1')).json()) as { entries: { seq: number }[] }).entries[0]!.seq
  expect(newest).toBeGreaterThanOrEqual(20_000)
  const m = await meter(page)
  const at = page.locator('[data-at]'), state = page.locator('[data-state-at]')
  const shows = async (seq: number) => {
    await expect(at).toHaveAttribute('data-at', String(seq))
    await expect(state).toHaveAttribute('data-state-at', String(seq))
    expect(JSON.parse(await state.innerText())).toEqual(await (await request.get(`/runs/long/state?at=${seq}`)).json())
  }
  const spent: Record<string, number> = {}
  spent.first = await m.loaded(async () => { await page.goto('/console/runs/long'); await shows(newest) })
  spent.step = await m.cpu(async () => { await page.keyboard.press('['); await shows(newest - 1) })
  // A link to an early entry reads what is around it, and stays there.
  spent.link = await m.loaded(async () => { await page.goto('/console/runs/long?at=1000'); await shows(1000) })
  const reads: string[] = []
  page.on('request', (r) => { if (r.url().includes('/journal')) reads.push(r.url()) })
  spent.forward = await m.cpu(async () => { await page.getByRole('button', { name: 'Show later entries' }).click(); await expect(at).toHaveText(/^\d+ of 1500$/) })
  await shows(1000)
  expect(reads.filter((u) => u.includes('after='))).toHaveLength(1)
  // At most 10,000 entries are kept, so that the page can go on for ever.
  for (let n = 2000; n <= 10_000; n += 500) {
    await page.getByRole('button', { name: 'Show later entries' }).click()
    await expect(at).toHaveText(new RegExp(`^\\d+ of ${n}$`))
  }
  await page.getByRole('button', { name: 'Show later entries' }).click()
  await expect(page.getByRole('heading', { name: /^Journal/ })).toContainText('entries 1,001 to 11,00')
  await shows(1001) // the chosen entry has made room
  spent.far = await m.cpu(async () => { await page.keyboard.press(']'); await shows(1002) })
  expect(await m.nodes()).toBeLessThan(1500)
  expect(await m.heap()).toBeLessThan(60)
  spent.last = await m.cpu(async () => { await page.getByRole('button', { name: 'Last entry' }).click(); await shows(newest) })
  test.info().annotations.push({ type: 'CPU seconds', description: JSON.stringify(spent) })
  for (const [what, s] of Object.entries(spent)) expect(s, what).toBeLessThan(1)
})
