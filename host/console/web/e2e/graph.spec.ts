import { layout } from '../src/lib/layout'
import { heat, loads } from '../src/lib/load'
import { expect, test } from './fixture'


for (const path of ['workflows', 'workflows/approval']) {
  test(`at 320 pixels /${path} does not scroll sideways`, async ({ page, axe }) => {
    await page.setViewportSize({ width: 320, height: 640 })
    await page.goto(`/console/${path}`)
    await expect(page.getByText(path === 'workflows' ? 'wordcount' : '6 nodes')).not.toHaveCount(0)
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320)
    await axe()
  })
}

test('boxes of a layout do not overlap, and edges lead to the right except in cycles', () => {
  const node = (i: number) => ({ id: `n${i}`, w: 90 + (i % 5) * 20, h: i % 2 ? 30 : 48 })
  // A chain with branches, a cycle, an edge to itself, and edges whose ends are missing.
  const cases: [number, [number, number][]][] = [
    [0, []], [1, [[0, 0]]], [3, [[0, 1], [1, 2], [2, 0]]], [4, [[0, 9], [9, 1], [3, 0]]],
    [1000, Array.from({ length: 1500 }, (_, i) => [i % 1000, (i % 1000) + 1 + ((i * 7919) % 40)] as [number, number])],
    [1000, Array.from({ length: 1500 }, (_, i) => [(i * 31) % 1000, (i * 7919) % 1000] as [number, number])], // with many cycles
    [300, Array.from({ length: 299 }, (_, i) => [0, i + 1] as [number, number])],
  ]
  for (const [n, ends] of cases) {
    const nodes = Array.from({ length: n }, (_, i) => node(i))
    const edges = ends.map(([s, t]) => ({ source: `n${s}`, target: `n${t}` }))
    const l = layout(nodes, edges)
    const boxes = [...l.boxes.values()].sort((a, b) => a.x - b.x)
    expect(boxes).toHaveLength(n)
    expect(l.layers.flat().sort()).toEqual(nodes.map((x) => x.id).sort())
    boxes.forEach((a, i) => {
      if (!(a.x >= 0 && a.y >= 0 && a.x + a.w <= l.width && a.y + a.h <= l.height + 0.001)) throw new Error(`${a.id} of ${n} is outside`)
      for (let k = i + 1; k < boxes.length && boxes[k]!.x < a.x + a.w; k++) {
        const b = boxes[k]!
        if (a.y < b.y + b.h - 0.001 && b.y < a.y + a.h - 0.001) throw new Error(`${a.id} and ${b.id} of ${n} overlap`)
      }
    })
    const known = edges.filter((e) => l.boxes.has(e.source) && l.boxes.has(e.target))
    expect(l.lines).toHaveLength(known.length)
    if (n === 1000 && ends[1]![0] === 1) expect(known.filter((e) => l.boxes.get(e.source)!.layer >= l.boxes.get(e.target)!.layer)).toEqual([])
  }
})

test('the load of a step is what its entries say', () => {
  const entry = (seq: number, more: object) => ({ seq, kind: 'edit', forkable: false, ...more })
  const all = [
    entry(1, { kind: 'start', began: [{ step: 'a', invocation: 1, attempt: 1 }] }),
    entry(2, { kind: 'wait', step: 'a', invocation: 1, attempt: 1 }),
    entry(3, { kind: 'edit', step: 'a', invocation: 1, attempt: 1 }),
    entry(4, { kind: 'finish', step: 'a', invocation: 1, attempt: 1, fuel: 70, error: { code: 'x' }, retry_at: '2026-01-01T00:00:00Z', began: [{ step: 'a', invocation: 1, attempt: 2 }] }),
    entry(5, { kind: 'finish', step: 'a', invocation: 1, attempt: 2, fuel: 30, began: [{ step: 'b', invocation: 2, attempt: 1 }] }),
    entry(6, { kind: 'finish', step: 'b', invocation: 2, attempt: 1, fuel: 900, error: { code: 'x' }, status: 'failed' }),
  ]
  const none = { invocations: 0, done: 0, running: 0, waiting: 0, failed: 0, retries: 0, fuel: 0, time: 0 }
  expect(loads(all.slice(0, 2)).get('a')).toEqual({ ...none, invocations: 1, waiting: 1 })
  expect(loads(all.slice(0, 3)).get('a')).toEqual({ ...none, invocations: 1, running: 1 })
  expect(loads(all.slice(0, 4)).get('a')).toEqual({ ...none, invocations: 1, running: 1, retries: 1, fuel: 70 })
  expect(Object.fromEntries(loads(all))).toEqual({ a: { ...none, invocations: 1, done: 1, retries: 1, fuel: 100 }, b: { ...none, invocations: 1, failed: 1, fuel: 900 } })
  // Time passes while an invocation does not wait.
  const timed = all.map((e, i) => ({ ...e, time: new Date(1000 * [0, 1, 60, 62, 70, 71][i]!).toISOString() }))
  expect(loads(timed.slice(0, 2)).get('a')!.time).toBe(1000)
  expect(loads(timed.slice(0, 3)).get('a')!.time).toBe(1000)
  expect([loads(timed).get('a')!.time, loads(timed).get('b')!.time]).toEqual([1000 + 2000 + 8000, 1000])
  expect([0, 1, 6, 20, 40, 90].map((f) => heat(f, 100))).toEqual([0, 1, 2, 3, 4, 5])
})

test('a workflow is drawn, and walked along its edges by the keyboard', async ({ page, axe, request }) => {
  await page.goto('/console/')
  await expect(page.getByRole('heading', { name: 'Runs', level: 1 })).toBeVisible()
  await page.keyboard.press('g')
  await page.keyboard.press('w')
  await expect(page.getByRole('heading', { name: 'Workflows', level: 1 })).toBeFocused()
  await expect(page.getByRole('link', { name: 'approval', exact: true })).toBeVisible()
  const { details } = await (await request.get('/workflows?details=true')).json()
  await expect(page.getByRole('row')).toHaveCount(details.length + 1)
  await page.getByLabel('Search').fill('count')
  await expect(page.getByRole('row')).toHaveCount(details.filter((w: { name: string }) => w.name.includes('count')).length + 1)
  await page.getByLabel('Search').fill('')
  await axe()
  await page.getByRole('link', { name: 'approval', exact: true }).focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'approval', level: 1 })).toBeFocused()

  // The page has the nodes of the API.
  const diagram = await (await request.get('/workflows/approval/graph')).json()
  await expect(page.locator('[data-node]')).toHaveCount(diagram.nodes.length)
  for (const n of diagram.nodes) await expect(page.locator(`[data-node="${n.id}"]`)).toHaveAttribute('aria-label', `${n.kind} ${n.label}`)
  await expect(page.locator('path.edge')).toHaveCount(diagram.edges.length)

  await page.locator('[data-node="StartEvent"]').focus()
  await page.keyboard.press('ArrowRight')
  await expect(page.locator('[data-node="approve"]')).toBeFocused()
  await expect(page.locator('[data-about]')).toHaveAttribute('data-about', 'approve')
  await expect(page.locator('[data-about]')).toContainText('approval') // its plugin
  await page.keyboard.press('ArrowLeft')
  await expect(page.locator('[data-node="StartEvent"]')).toBeFocused()
  await page.getByText('As a list').click()
  await expect(page.getByRole('listitem').filter({ hasText: 'step approve' })).toContainText('asks: InputRequiredEvent')
  await axe()
  await page.getByText('As a list').click()
  await page.locator('[data-node="approve"]').click()
})

test('the graph of a run shows what its steps have done, entry by entry', async ({ page, axe, request }) => {
  const id = 'graph-drawn'
  expect((await request.post('/workflows/wordcount/run', { data: { handler_id: id, start_event: { text: 'to be or not to be' } } })).ok()).toBe(true)
  const { entries } = (await (await request.get(`/handlers/${id}/journal?limit=500`)).json()) as { entries: { step?: string; fuel?: number; kind: string }[] }
  const fuel = new Map<string, number>()
  let sum = 0
  for (const e of entries) if (e.step && e.fuel) { fuel.set(e.step, (fuel.get(e.step) ?? 0) + e.fuel); sum += e.fuel }
  await page.goto(`/console/runs/${id}`)
  for (const [step, burnt] of fuel) {
    const done = entries.filter((e) => e.kind === 'finish' && e.step === step).length
    const share = (100 * burnt) / sum
    await expect(page.locator(`[data-node="${step}"]`)).toHaveAttribute('aria-label', new RegExp(`^step ${step}: ${done} done, .* ${share.toFixed(share < 10 ? 1 : 0)} %$`))
  }
  await page.getByRole('radio', { name: 'Fuel' }).check()
  for (const [step, burnt] of fuel) await expect(page.locator(`[data-node="${step}"]`)).toHaveAttribute('data-heat', String(heat(burnt, sum)))
  await axe()
  await page.locator('.pane').evaluate((el) => el.closest('section')!.scrollIntoView())
  await page.getByRole('radio', { name: 'Attempts' }).check()
  for (const step of fuel.keys()) await expect(page.locator(`[data-node="${step}"]`)).toHaveAttribute('aria-label', new RegExp(`^step ${step}: \\d+ attempts?, `))
  await page.getByRole('radio', { name: 'Time' }).check()
  for (const step of fuel.keys()) await expect(page.locator(`[data-node="${step}"]`)).toHaveAttribute('aria-label', new RegExp(`^step ${step}: (no time|.* (s|ms|min), .* %), `))
  await page.getByRole('radio', { name: 'Status' }).check()
  await page.getByRole('button', { name: 'First entry' }).click()
  const first = await page.locator('[data-node][aria-label*="1 running"]').count()
  expect(first).toBe(1)
})

test('a graph of 1,000 nodes has in the page what is in view', async ({ page, axe }) => {
  const nodes = Array.from({ length: 1000 }, (_, i) => ({ id: `s${i}`, kind: i % 2 ? 'event' : 'step', label: `node ${i}`, step: `s${i}` }))
  const edges = Array.from({ length: 1500 }, (_, i) => ({ source: `s${i % 1000}`, target: `s${((i % 1000) + 1 + ((i * 7919) % 40)) % 1000}`, kind: 'emits' }))
  await page.route('**/workflows/big/graph', (r) => r.fulfill({ json: { workflow: 'big', sha256: 'f'.repeat(64), description: '', flow: false, nodes, edges } }))
  await page.goto('/console/workflows/big')
  await expect(page.getByText('1000 nodes, 1500 edges')).toBeVisible()
  const drawn = await page.locator('[data-node]').count()
  expect(drawn).toBeGreaterThan(1)
  expect(drawn).toBeLessThan(400)
  await page.locator('[data-node][tabindex="0"]').focus()
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press('ArrowRight')
    await expect(page.locator('[data-node]:focus')).toHaveCount(1)
    await expect(page.locator('[data-node]:focus')).toBeInViewport()
  }
  await axe()
})

test('quiz is played by the keyboard alone', async ({ page }) => {
  const id = 'quiz-alone'
  await page.goto('/console/')
  await expect(page.getByRole('heading', { name: 'Runs', level: 1 })).toBeVisible()
  let result: { action?: string } = {}
  for (let turn = 0; turn < 10 && result.action !== 'complete'; turn++) {
    await page.locator('body').press('s')
    await expect(page.getByRole('heading', { name: 'Start a run' })).toBeFocused()
    await expect(page.getByLabel('Workflow')).toBeVisible()
    await page.keyboard.press('Tab')
    await expect(page.getByLabel('Workflow')).toBeFocused()
    await page.keyboard.type('quiz')
    await page.keyboard.press('Enter')
    await expect(page.getByLabel(/^action/)).toBeVisible()
    await page.getByLabel('handler id').focus()
    await page.keyboard.type(id)
    await page.keyboard.press('Tab')
    await expect(page.getByLabel(/^action/)).toBeFocused()
    await page.keyboard.type(turn === 0 ? 'start' : 'answer')
    await page.getByLabel(/^answer/).focus()
    if (turn > 0) await page.keyboard.type('paris')
    await page.keyboard.press('Enter')
    await expect(page).toHaveURL(new RegExp(`/console/runs/${id}$`))
    await expect(page.locator('[data-phase]')).toContainText('completed')
    result = (await (await page.request.get(`/handlers/${id}`)).json()).result.value.result
    await expect.poll(async () => JSON.parse(await page.locator('[data-result]').innerText())).toEqual({ result })
  }
  expect(result).toMatchObject({ action: 'complete', score: 1 })
})

test('a question that one step asks and another takes is answered by the keyboard alone', async ({ page, request }) => {
  const id = 'human-alone'
  expect((await request.post('/workflows/human/run-nowait', { data: { handler_id: id, start_event: {} } })).ok()).toBe(true)
  await page.goto('/console/')
  await expect(page.getByRole('heading', { name: 'Runs', level: 1 })).toBeVisible()
  await page.keyboard.press('g')
  await page.keyboard.press('q')
  await expect(page.getByRole('heading', { name: 'Questions', level: 1 })).toBeFocused()
  const mine = page.getByRole('button', { name: new RegExp(id) })
  await mine.focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: `human / ${id}` })).toBeVisible()
  await page.getByLabel('response').focus()
  await page.keyboard.type('42') // JSON, in a field of several lines
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await expect(mine).toHaveCount(0)
  await page.goto(`/console/runs/${id}`)
  await expect(page.locator('[data-phase]')).toContainText('completed')
  await expect(page.locator('[data-result]')).toContainText('42')
})
