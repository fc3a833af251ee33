import { readFileSync } from 'node:fs'
import type { APIRequestContext, Page } from '@playwright/test'
import { expect, test } from './fixture'


test('the root address leads to the runs, and a start by the form to its run', async ({ page, axe }) => {
  await page.goto('/')
  await expect(page).toHaveURL(/\/console\/$/)
  await expect(page.getByRole('heading', { name: 'Runs', level: 1 })).toBeVisible()
  await axe()

  const id = 'words'
  await page.keyboard.press('s')
  await expect(page.getByRole('heading', { name: 'Start a run' })).toBeFocused()
  await page.getByLabel('Workflow').selectOption('wordcount')
  await page.getByLabel('handler id').fill(id)
  await page.getByLabel('text', { exact: true }).fill('to be or not to be')
  await axe()
  await page.getByRole('button', { name: 'Start wordcount' }).click()
  await expect(page).toHaveURL(new RegExp(`/console/runs/${id}$`))
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused()
  await expect(page.locator('[data-phase]')).toContainText('completed')

  // The page shows what the API says.
  const record = await (await page.request.get(`/handlers/${id}`)).json()
  expect(JSON.parse(await page.locator('[data-result]').innerText())).toEqual(record.result.value)
  const state = await (await page.request.get(`/sessions/${record.session_id}/state`)).json()
  await expect.poll(async () => JSON.parse(await page.locator('[data-state]').innerText())).toEqual(state)
  await expect(page.locator('#events').locator('..').getByText('StopEvent')).toBeVisible()
  await axe()

  await page.goBack()
  await page.goBack()
  await expect(page.getByRole('heading', { name: 'Runs', level: 1 })).toBeFocused()
  await expect(page.getByRole('link', { name: id })).toBeVisible()
})

test('a run is stepped through, with the exact state at every entry', async ({ page, axe, request }) => {
  const id = 'steps'
  expect((await request.post('/workflows/approval/run-nowait', { data: { handler_id: id, start_event: { item: 'chair' } } })).ok()).toBe(true)
  for (const role of ['manager', 'finance']) {
    await expect.poll(async () => JSON.stringify((await (await request.get(`/handlers/${id}`)).json()).waiting_for ?? '')).toContain(role)
    expect((await request.post(`/events/${id}`, { data: { event: { type: 'HumanResponseEvent', value: { role, approved: true } } } })).ok()).toBe(true)
  }
  await expect.poll(async () => (await (await request.get(`/handlers/${id}`)).json()).status).toBe('completed')
  const { entries } = await (await request.get(`/handlers/${id}/journal?limit=500`)).json()
  await page.goto(`/console/runs/${id}`)
  const at = page.locator('[data-at]'), state = page.locator('[data-state-at]')
  await expect(at).toHaveText(`${entries.length} of ${entries.length}`)
  // The state is that of the API, and what the edits of the entries so far give.
  const states: Record<string, unknown> = {}, expected: unknown[] = []
  for (const e of entries) {
    for (const x of e.edits ?? []) { if ('new' in x) states[x.path] = x.new; else delete states[x.path] } // its paths have one part
    expected.push(structuredClone(states))
  }
  expect(new Set(expected.map((s) => JSON.stringify(s))).size).toBeGreaterThan(1)
  for (let i = entries.length - 1; ; i--) {
    await expect(at).toHaveText(`${i + 1} of ${entries.length}`)
    await expect(state).toHaveAttribute('data-state-at', String(entries[i].seq))
    const shown = JSON.parse(await state.innerText())
    expect(shown).toEqual(await (await request.get(`/runs/${id}/state?at=${entries[i].seq}`)).json())
    expect(shown).toEqual(expected[i])
    if (i === 0) break
    await page.keyboard.press('[')
  }
  await page.keyboard.press(']')
  await expect(at).toHaveAttribute('data-at', String(entries[1].seq))
  await axe()
})

test('the state at every entry of the runs of the examples is the state that the API has', async ({ page, request, allowed }) => {
  allowed.push(/status of 500/) // the record of a failed run
  const examples = JSON.parse(process.env.WEFT_EXAMPLES!) as Record<string, object[]>
  expect(Object.keys(examples).length).toBeGreaterThanOrEqual(17)
  for (const [n, [workflow, start_event]] of Object.entries(examples).flatMap(([name, starts]) => starts.map((s) => [name, s] as const)).entries()) {
    const id = `each-${n}`
    const begun = await request.post(`/workflows/${workflow}/run-nowait`, { data: { handler_id: id, session: `of-${workflow}`, start_event } })
    expect(begun.status(), workflow).toBe(200)
    // It has ended, or waits for a person.
    await expect.poll(async () => {
      const run = (await (await request.get(`/runs/${id}`)).json()) as { status: string; waiting_for?: { type?: string; reason?: string }[] }
      return run.status !== 'running' || !!run.waiting_for?.some((w) => w.type && !w.reason)
    }).toBe(true)
    const { entries } = (await (await request.get(`/handlers/${id}/journal?limit=500`)).json()) as { entries: { seq: number }[] }
    expect(entries.length).toBeGreaterThan(0)
    await page.goto(`/console/runs/${id}?at=${entries[0]!.seq}`)
    const state = page.locator('[data-state-at]')
    for (const e of entries) {
      await expect(state).toHaveAttribute('data-state-at', String(e.seq))
      expect(JSON.parse(await state.innerText())).toEqual(await (await request.get(`/runs/${id}/state?at=${e.seq}`)).json())
      await page.keyboard.press(']')
    }
    if ((await request.get(`/runs/${id}`).then((r) => r.json())).status === 'running') expect((await request.post(`/handlers/${id}/cancel`)).ok()).toBe(true)
  }
})

test('a long journal is read in pages, each once, and a link opens one of its entries', async ({ page, axe, request }) => {
  const id = 'long'
  expect((await request.post('/workflows/approval/run-nowait', { data: { handler_id: id, start_event: { item: 'desk' } } })).ok()).toBe(true)
  await expect.poll(async () => JSON.stringify((await (await request.get(`/handlers/${id}`)).json()).waiting_for ?? '')).toContain('manager')
  for (let i = 0; i < 520; i += 20) await Promise.all(Array.from({ length: 20 }, (_, n) => request.patch(`/sessions/${id}/state`, { data: { [`note${n}`]: 'x'.repeat(n ? 3 : 3000) + i } })))
  const newest = async () => (await (await request.get(`/runs/${id}/journal?order=desc&limit=1`)).json()).entries[0].seq as number
  const last = await newest()
  expect(last).toBeGreaterThan(510)
  const reads: URL[] = []
  page.on('request', (r) => { const u = new URL(r.url()); if (u.pathname.endsWith('/journal') && !u.searchParams.has('kind')) reads.push(u) })
  await page.goto(`/console/runs/${id}`)
  const at = page.locator('[data-at]')
  await expect(at).toHaveText('500 of 500')
  // An entry that comes is read alone.
  await request.patch(`/sessions/${id}/state`, { data: { note: 'later' } })
  await expect(at).toHaveText('501 of 501')
  expect(reads[0]!.search).toContain('order=desc')
  for (const u of reads.slice(1)) expect([last, last + 1].map(String)).toContain(u.searchParams.get('after'))
  const quiet = reads.length
  await page.waitForRequest((r) => r.url().includes(`after=${last + 1}`))
  expect(reads.length - quiet).toBeLessThanOrEqual(2) // the page waits between its reads
  await page.getByRole('button', { name: 'First entry' }).click()
  await expect(at).toHaveText('1 of 501')
  const seq = Number(await at.getAttribute('data-at'))
  await page.keyboard.press('[')
  await expect(at).toHaveAttribute('data-at', String(seq - 1))
  await expect(page.locator('[data-state-at]')).toHaveAttribute('data-state-at', String(seq - 1))
  expect(JSON.parse(await page.locator('[data-state-at]').innerText())).toEqual(await (await request.get(`/runs/${id}/state?at=${seq - 1}`)).json())
  // The address has the entry.
  await expect(page).toHaveURL(new RegExp(`at=${seq - 1}$`))
  await page.goto(`/console/runs/${id}?at=3`)
  await expect(at).toHaveAttribute('data-at', '3')
  // A long value is cut, until the whole is asked for.
  const long = ((await (await request.get(`/runs/${id}/journal?kind=patch&cut=64`)).json()).entries as { seq: number; edits: { new: unknown }[] }[]).find((e) => e.edits.some((x) => (x.new as { cut?: boolean }).cut))!
  await page.goto(`/console/runs/${id}?at=${long.seq}`)
  await expect(page.locator('ins')).toContainText('bytes)')
  await axe()
  await page.getByRole('button', { name: `Show the whole values of entry ${long.seq}` }).click()
  await expect(page.locator('ins')).toContainText('x'.repeat(3000))
})

test('a run is forked with another state and another answer, and both runs are compared', async ({ page, axe, request }) => {
  const id = 'forked'
  expect((await request.post('/workflows/approval/run-nowait', { data: { handler_id: id, start_event: { item: 'laptop' } } })).ok()).toBe(true)
  for (const role of ['manager', 'finance']) {
    await expect.poll(async () => JSON.stringify((await (await request.get(`/handlers/${id}`)).json()).waiting_for ?? '')).toContain(role)
    expect((await request.post(`/events/${id}`, { data: { event: { type: 'HumanResponseEvent', value: { role, approved: true } } } })).ok()).toBe(true)
  }
  await expect.poll(async () => (await (await request.get(`/handlers/${id}`)).json()).status).toBe('completed')
  const { entries } = (await (await request.get(`/runs/${id}/journal`)).json()) as { entries: { seq: number; kind: string; forkable: boolean; wait?: object }[] }

  // The last entry ended the run: the fork begins at the nearest one before it.
  const last = entries[entries.length - 1]!, resting = entries.filter((e) => e.forkable).pop()!
  await page.goto(`/console/runs/${id}?at=${last.seq}`)
  await expect(page.locator('[data-at]')).toHaveAttribute('data-at', String(last.seq))
  await page.keyboard.press('e')
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('heading', { name: `Edit and fork after entry ${resting.seq}` })).toBeVisible()
  await expect(dialog).toContainText(`No fork can begin just after entry ${last.seq}`)
  await page.keyboard.press('Escape')

  const wait = entries.find((e) => e.wait)!
  await page.goto(`/console/runs/${id}?at=${wait.seq}`)
  await expect(page.locator('[data-at]')).toHaveAttribute('data-at', String(wait.seq))
  await page.keyboard.press('e')
  const state = dialog.getByLabel(`State after entry ${wait.seq}`)
  const before = await (await request.get(`/runs/${id}/state?at=${wait.seq}`)).json()
  await expect.poll(async () => JSON.parse((await state.inputValue()) || 'null')).toEqual(before)
  await expect(dialog.getByRole('combobox', { name: 'Answer' })).toHaveValue('HumanResponseEvent')
  await expect(dialog.getByLabel(/^role/)).toHaveValue('manager')
  // A state that is not JSON is refused here, and nothing is begun before the check.
  await state.fill('{')
  await dialog.getByRole('button', { name: 'Check the fork' }).click()
  await expect(dialog.getByRole('alert')).toContainText('not JSON')
  await expect(dialog.getByRole('button', { name: 'Fork now' })).toHaveCount(0)
  await state.fill(JSON.stringify({ ...before, note: 'edited by hand' }))
  await dialog.getByRole('button', { name: 'Check the fork' }).click()
  await expect(dialog.locator('ins')).toContainText('edited by hand')
  await expect(dialog.getByRole('status')).toContainText('Nothing outside of the session begins again')
  await expect(dialog.getByRole('button', { name: 'Fork now' })).toBeFocused()
  await axe()
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/console\/compare\?a=/)
  await expect(page.getByRole('heading', { name: 'Compare two runs' })).toBeVisible()
  const fork = new URL(page.url()).searchParams.get('b')!
  const made = (await (await request.get(`/runs/${fork}/journal`)).json()).entries as { seq: number; kind: string }[]
  expect([made[0]!.seq, made[0]!.kind]).toEqual([1, 'fork'])
  expect(await (await request.get(`/runs/${fork}/state?at=1`)).json()).toMatchObject({ note: 'edited by hand' })
  await expect(page.locator('[data-same-until]')).toContainText(`until ${wait.seq}`)
  await expect(page.locator('[data-path=note] ins')).toContainText('edited by hand')
  await expect(page.locator('[data-result-same]')).toHaveText('≠')
  await expect(page.locator('tr[data-differs]').first()).toBeVisible()
  await axe()
  // The run that was forked is as it was, and a run compared with itself is the same.
  expect(((await (await request.get(`/runs/${id}/journal`)).json()).entries as object[]).length).toBe(entries.length)
  await page.getByLabel('Run a').fill(id)
  await page.getByLabel('Run b').fill(id)
  await page.getByRole('button', { name: 'Compare' }).click()
  await expect(page.getByText('No entry differs.')).toBeVisible()
  await expect(page.locator('[data-result-same]')).toHaveText('=')
  await page.getByLabel('only differences').uncheck()
  await expect(page.locator('tr[data-differs]')).toHaveCount(entries.length)
})

test('a plugin is uploaded, and a broken one is refused with its problems', async ({ page, axe, allowed }) => {
  allowed.push(/status of 422/, /status of 400/, /status of 409/) // the refusal is in the browser's log
  await page.goto('/console/plugins')
  await page.getByLabel('Drop a .wasm file here, or choose one').setInputFiles({ name: 'broken.wasm', mimeType: 'application/wasm', buffer: Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 0x7f]) })
  await expect(page.getByLabel(/^Name of the plugin/)).toBeFocused()
  await expect(page.getByRole('alert')).toContainText('Nothing was changed.')
  await expect(page.getByRole('alert').getByRole('listitem')).toContainText('truncated')
  await axe()
  await page.getByRole('button', { name: 'Discard' }).click()
  const wasm = readFileSync(process.env.WEFT_WASM!).toString('base64')
  const drop = await page.evaluateHandle((text) => {
    const data = new DataTransfer()
    data.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], 'counter.wasm', { type: 'application/wasm' }))
    return data
  }, wasm)
  await page.getByRole('group', { name: 'Upload a plugin' }).dispatchEvent('drop', { dataTransfer: drop })
  await expect(page.getByLabel(/^Name of the plugin/)).toHaveValue('counter')
  await expect(page.getByRole('heading', { name: 'counter is the same as version 1' })).toBeVisible()
  await axe()
  // Under another plugin's name it would break a workflow: the page says so, and stores nothing.
  await page.getByLabel(/^Name of the plugin/).fill('approval')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('alert')).toContainText('counter')
  await expect(page.getByRole('button', { name: 'Upload', exact: true })).toHaveCount(0)
  await page.getByLabel(/^Name of the plugin/).fill('counter')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'counter is the same as version 1' })).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: /counter is uploaded/ })).toBeVisible()
  await axe()
})

test('a form shows why the server refuses it', async ({ page, allowed, request }) => {
  allowed.push(/status of 409/) // the refusal is in the browser's log
  const id = 'taken'
  expect((await request.post('/workflows/approval/run-nowait', { data: { handler_id: id, start_event: { item: 'desk' } } })).ok()).toBe(true)
  await page.goto('/console/start/approval')
  await page.getByLabel('handler id').fill(id)
  await page.getByRole('button', { name: 'Start approval' }).click()
  await expect(page.getByRole('alert')).toContainText(`'${id}' is already running`)
  await expect(page).toHaveURL(/\/console\/start\/approval$/)
})

test('approval is played by the keyboard alone', async ({ page, axe }) => {
  const id = 'laptop'
  await page.goto('/console/')
  await expect(page.getByRole('heading', { name: 'Runs' })).toBeVisible()
  await page.keyboard.press('s')
  await expect(page.getByRole('heading', { name: 'Start a run' })).toBeFocused()
  await expect(page.getByLabel('Workflow')).toBeVisible() // the server lists them
  await page.keyboard.press('Tab')
  await expect(page.getByLabel('Workflow')).toBeFocused()
  await page.keyboard.type('approval')
  await page.keyboard.press('Enter')
  await expect(page.getByLabel('item')).toBeVisible()
  await page.getByLabel('handler id').focus()
  await page.keyboard.type(id)
  await page.keyboard.press('Tab')
  await expect(page.getByLabel('item')).toBeFocused()
  await page.keyboard.type('laptop')
  await page.keyboard.press('Enter')
  await expect(page.locator('[data-phase]')).toContainText('waiting')
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused()

  await page.keyboard.press('g')
  await page.keyboard.press('q')
  await expect(page.getByRole('heading', { name: 'Questions', level: 1 })).toBeFocused()
  for (const role of ['manager', 'finance']) {
    const mine = page.getByRole('button', { name: new RegExp(`${id}.*for ${role}`) })
    await mine.focus()
    await page.keyboard.press('Enter')
    await expect(page.getByRole('heading', { name: `approval / ${id}` })).toBeVisible()
    await expect(page.locator('#answer').getByLabel(/^role/)).toHaveValue(role)
    await page.getByLabel('approved').focus()
    await page.keyboard.press('Space')
    await expect(page.getByLabel('approved')).toBeChecked()
    if (role === 'manager') await axe()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await expect(mine).toHaveCount(0)
    await expect(page.getByRole('status')).toContainText(`The answer to ${id} was sent`)
    // The focus is at the next question, or at the heading if there is none.
    await expect(page.locator('h1:focus, #answer input:focus')).toHaveCount(1)
  }
  await page.getByRole('status').getByRole('link').focus()
  await page.keyboard.press('Enter')
  await expect(page.locator('[data-phase]')).toContainText('completed')
  await expect(page.locator('[data-result]')).toContainText('finance')
})

test('the page of a run says what is asked, by the step that waits or by another', async ({ page, axe, request }) => {
  const asked = { approval: ['manager, approve desk?', { item: 'desk' }], human: ['Enter a number:', {}] } as const
  for (const [workflow, [text, start_event]] of Object.entries(asked)) {
    const id = `prompt-${workflow}`
    expect((await request.post(`/workflows/${workflow}/run-nowait`, { data: { handler_id: id, start_event } })).ok()).toBe(true)
    await page.goto(`/console/runs/${id}`)
    await expect(page.locator('[data-asked]')).toHaveText(text)
    if (workflow === 'approval') {
      await expect(page.getByText('role (given)')).toBeVisible()
      await expect(page.locator('[data-node=approve] .dot')).toHaveCount(1) // one invocation waits
    }
    await axe()
  }
})

test('the list of runs is live, filtered, and walked by j and k', async ({ page, axe, request }) => {
  const begin = (id: string) => request.post('/workflows/wordcount/run', { data: { handler_id: id, start_event: { text: 'a b' } } })
  expect((await begin('live-first')).ok()).toBe(true)
  await page.goto('/console/?workflow=wordcount')
  await expect(page.getByRole('row').nth(1)).toBeVisible()
  const id = 'live-second'
  expect((await begin(id)).ok()).toBe(true)
  const row = page.getByRole('row', { name: new RegExp(id) })
  await expect(row).toContainText('completed')
  await expect(page.getByRole('row', { name: /approval/ })).toHaveCount(0)
  await page.locator('main').focus()
  await page.keyboard.press('j')
  await expect(page.getByRole('link', { name: id })).toBeFocused()
  await page.keyboard.press('j')
  await expect(page.getByRole('link', { name: id })).not.toBeFocused()
  await page.keyboard.press('k')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: id })).toBeFocused()
  await page.goto('/console/?status=failed&workflow=counter')
  await expect(page.getByText('No run matches these filters.')).toBeVisible()
  await axe()
  await page.goto('/console/')
  await expect(page.getByRole('row', { name: new RegExp(id) })).toBeVisible()
  await axe()
})

test('runs are found by phase, by the beginning of an id, and page by page', async ({ page, axe, request }) => {
  const id = 'found'
  for (let i = 0; i < 7; i++) {
    const begun = await request.post('/workflows/approval/run-nowait', { data: { handler_id: `${id}-${i}`, start_event: { item: 'a' } } })
    expect(begun.ok()).toBe(true)
  }
  await page.goto(`/console/?id=${id}&phase=waiting`)
  await expect(page.locator('tbody tr')).toHaveCount(7)
  await axe()
  // Small pages, so that few runs fill them.
  await page.route(/\/runs\?/, (route) => route.continue({ url: route.request().url().replace('limit=100', 'limit=2') }))
  await page.goto('/console/?phase=waiting')
  await page.getByLabel('Beginning of a run id or a handler id').fill(id)
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(new RegExp(`id=${id}`))
  const shown = (names: number[]) => expect(page.locator('tbody a[data-row]')).toHaveText(names.map((i) => `${id}-${i}`))
  await shown([6, 5])
  await page.getByRole('button', { name: 'Show older runs' }).click()
  await shown([6, 5, 4, 3])
  await page.getByRole('button', { name: 'Show older runs' }).click()
  await page.getByRole('button', { name: 'Show older runs' }).click()
  await shown([4, 3, 2, 1, 0]) // three pages are kept
  await expect(page.getByRole('button', { name: 'Show older runs' })).toHaveCount(0)
  await page.getByRole('button', { name: 'Show newer runs' }).click()
  await shown([6, 5, 4, 3, 2, 1])
  await axe()
  await page.locator('main').focus()
  await page.keyboard.press('.')
  await shown([6, 5])
  for (let i = 0; i < 7; i++) expect((await request.post(`/handlers/${id}-${i}/cancel`)).ok()).toBe(true)
  await expect(page.getByText('No run matches these filters.')).toBeVisible()
})

test('the state of a session is edited, and an edit that crosses another shows both', async ({ page, axe, request, allowed }) => {
  allowed.push(/412/) // the crossing edit
  const id = 'edited'
  expect((await request.post('/workflows/approval/run-nowait', { data: { handler_id: id, start_event: { item: 'desk' } } })).ok()).toBe(true)
  await page.goto('/console/')
  await expect(page.getByRole('heading', { name: 'Runs', level: 1 })).toBeVisible()
  await page.keyboard.press('g')
  await page.keyboard.press('s')
  await expect(page.getByRole('heading', { name: 'Sessions', level: 1 })).toBeFocused()
  await expect(page.getByRole('link', { name: id, exact: true })).toBeVisible()
  await axe()
  await page.getByRole('link', { name: id, exact: true }).click()
  await expect(page.locator('[data-state]')).toContainText('"calls": 1')
  await expect(page.getByRole('listitem').filter({ hasText: id })).toContainText('waiting')
  await page.getByRole('button', { name: 'Edit the state' }).click()
  const field = page.getByLabel('State as JSON'), saved = async () => (await request.get(`/sessions/${id}/state`)).text()
  await expect(field).toBeFocused()
  await field.fill('[1]')
  await page.getByRole('button', { name: 'Save the state' }).click()
  await expect(page.getByRole('alert')).toContainText('must be an object')
  // A number beyond 2^53 is kept as it was typed.
  await field.fill('{"calls": 1, "big": 9007199254740993}')
  await page.getByRole('button', { name: 'Save the state' }).click()
  await expect(page.locator('[data-state]')).toContainText('9007199254740993')
  expect(await saved()).toContain('9007199254740993')
  // Somebody else edits meanwhile.
  await page.getByRole('button', { name: 'Edit the state' }).click()
  await field.fill('{"calls": 2, "big": 9007199254740993}')
  expect((await request.patch(`/sessions/${id}/state`, { data: { theirs: true } })).ok()).toBe(true)
  await page.getByRole('button', { name: 'Save the state' }).click()
  await expect(page.getByRole('alert')).toContainText('Somebody else has changed the state')
  await expect(page.locator('ins').filter({ hasText: 'true' })).toBeVisible()
  expect(await saved()).not.toContain('"calls":2')
  await axe()
  await page.getByRole('button', { name: 'Save over it' }).click()
  await expect(page.locator('[data-state]')).toContainText('"calls": 2')
  expect(JSON.parse(await saved())).not.toHaveProperty('theirs')
})

test('quotas, the audit log and the metrics are what the API has', async ({ page, axe, request }) => {
  await page.goto('/console/')
  await expect(page.getByRole('heading', { name: 'Runs', level: 1 })).toBeVisible()
  await page.keyboard.press('g')
  await page.keyboard.press('o')
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused()
  const parts = page.getByRole('navigation', { name: 'Parts of the operation' })
  await parts.getByRole('link', { name: 'Blocked runs' }).click()
  await expect(page.getByText('No run is blocked.')).toBeVisible()
  await axe()
  await parts.getByRole('link', { name: 'Quotas' }).click()
  const usage = (await (await request.get('/tenants/default/usage')).json()) as { quotas: { name: string }[] }
  expect(usage.quotas.length).toBeGreaterThan(5)
  for (const q of usage.quotas) await expect(page.getByRole('cell', { name: q.name, exact: true })).toBeVisible()
  await axe()
  await parts.getByRole('link', { name: 'Audit' }).click()
  await expect(page.getByRole('row', { name: /plugin\.put.*human/ })).toContainText('ok')
  await axe()
  await parts.getByRole('link', { name: 'Server' }).click()
  await page.getByLabel('Search').fill('weft_cores')
  await expect(page.getByRole('cell', { name: 'weft_cores', exact: true })).toBeVisible()
  await expect(page.getByRole('row', { name: /weft_journal_bytes_total/ })).toHaveCount(0)
  await axe()
})

test('a page that cannot be loaded says so', async ({ page, allowed }) => {
  allowed.push(/ERR_FAILED/)
  await page.route(/Operate-.*\.js/, (r) => r.abort())
  await page.goto('/console/operate/blocked')
  await expect(page.getByRole('heading', { name: 'The page cannot be shown' })).toBeVisible()
})

test('the keys are shown in a dialog that gives the focus back', async ({ page, axe }) => {
  await page.goto('/console/')
  await page.getByRole('button', { name: 'Keys' }).focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog')).toBeVisible()
  await axe()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('button', { name: 'Keys' })).toBeFocused()
})

test('what runs write is shown as text', async ({ page, request }) => {
  const hostile = '<img src=x onerror=alert(1)> javascript:alert(1) \u202e evil ' + 'x'.repeat(5000)
  const id = 'hostile'
  expect((await request.post('/workflows/approval/run-nowait', { data: { handler_id: id, start_event: { item: hostile } } })).ok()).toBe(true)
  await page.goto(`/console/runs/${id}`)
  await expect(page.getByText('<img src=x onerror=alert(1)>').first()).toBeVisible()
  await expect(page.getByText('<U+202E>').first()).toBeVisible()
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
})

for (const path of ['', 'compare', 'questions', 'sessions', 'operate/blocked', 'operate/quotas', 'operate/audit', 'operate/server', 'plugins', 'start/approval', 'runs/nothing']) {
  test(`at 320 pixels /${path} does not scroll sideways`, async ({ page, allowed, axe }) => {
    allowed.push(/404/)
    await page.setViewportSize({ width: 320, height: 640 })
    await page.goto(`/console/${path}`)
    await expect(page.locator('h1')).toBeVisible()
    await expect(page.getByText('Loading…')).toHaveCount(0)
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320)
    await axe()
  })
}

test.describe('with keys', () => {
  test.use({ baseURL: process.env.WEFT_KEYED_URL! })
  test('a person signs in once, and signs out', async ({ page, axe, allowed, context }) => {
    allowed.push(/401/) // a wrong key
    await page.goto('/console/runs')
    await expect(page.getByLabel('Key', { exact: true })).toBeFocused()
    await axe()
    await page.keyboard.type('weft_wrong')
    await page.keyboard.press('Enter')
    await expect(page.getByRole('alert')).not.toBeEmpty()
    await page.keyboard.type(process.env.WEFT_KEY!)
    await page.keyboard.press('Enter')
    await expect(page.getByRole('heading', { name: 'Runs' })).toBeVisible()
    await page.reload()
    await expect(page.getByText('There are no runs yet.')).toBeVisible()
    const cookies = await context.cookies()
    expect(cookies.map((c) => [c.httpOnly, c.sameSite, c.path])).toEqual([[true, 'Strict', '/']])
    expect(await page.evaluate(() => document.cookie + JSON.stringify(localStorage))).toBe('{}')
    // The cookie alone opens nothing.
    expect((await page.request.get('/handlers')).status()).toBe(401)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await expect(page.getByLabel('Key', { exact: true })).toBeFocused()
    await page.reload()
    await expect(page.getByLabel('Key', { exact: true })).toBeFocused()
  })

  // tenant makes a tenant with a run, and a key of it.
  async function tenant(request: APIRequestContext, name: string, role: string, run: string): Promise<{ id: string; key: string; headers: Record<string, string> }> {
    const admin = { Authorization: `Bearer ${process.env.WEFT_KEY!}` }, headers = { ...admin, 'Weft-Tenant': name }
    expect((await request.post('/tenants', { headers: admin, data: { name } })).ok()).toBe(true)
    const made = await request.post('/keys', { headers, data: { name: `${name}-key`, role } })
    expect(made.ok()).toBe(true)
    expect((await request.put('/plugins/counter', { headers: { ...headers, 'Content-Type': 'application/wasm' }, data: readFileSync(process.env.WEFT_WASM!) })).ok()).toBe(true)
    expect((await request.post('/workflows/counter/run', { headers, data: { handler_id: run, start_event: {} } })).ok()).toBe(true)
    return { ...(await made.json()) as { id: string; key: string }, headers }
  }
  async function signIn(page: Page, key: string) {
    await expect(page.getByLabel('Key', { exact: true })).toBeFocused()
    await page.keyboard.type(key)
    await page.keyboard.press('Enter')
    await expect(page.getByRole('heading', { level: 1, name: 'Sign in' })).toHaveCount(0)
  }

  test('a key that only reads is offered nothing else', async ({ page, axe, request }) => {
    const { key } = await tenant(request, 'readers', 'read', 'read-run')
    await page.goto('/console/')
    await signIn(page, key)
    await expect(page.getByRole('banner')).toContainText('role read')
    await expect(page.getByRole('link', { name: 'read-run' })).toBeVisible()
    const offered = () => page.locator('main').locator('button, a, input[type=file]').filter({ hasText: /^(Start|Start a run|Start another|Pause run|Cancel run|Retry run|Edit and fork|Upload)$/ })
    for (const path of ['', 'workflows', 'workflows/counter', 'plugins', 'runs/read-run']) {
      await page.goto(`/console/${path}`)
      await expect(page.locator('h1')).toBeVisible()
      await expect(page.getByText('Loading…')).toHaveCount(0)
      await expect(offered()).toHaveCount(0)
      await expect(page.locator('input[type=file]')).toHaveCount(0)
      await expect(page.getByRole('navigation').getByRole('link', { name: 'Start' })).toHaveCount(0)
      await axe()
    }
    await expect(page.locator('[data-state-at]')).toBeVisible()
    await page.keyboard.press('e')
    await expect(page.getByRole('dialog')).toHaveCount(0)
  })

  test('a key is made, shown once, and revoked', async ({ page, axe, request, context }) => {
    const made = await tenant(request, 'keys', 'admin', 'keys')
    await page.goto('/console/operate/keys')
    await signIn(page, made.key)
    await page.getByLabel('Name').fill('for the night shift')
    await page.getByLabel('Role').selectOption('run')
    await page.getByRole('button', { name: 'Create a key' }).click()
    const secret = page.getByLabel('The new key')
    await expect(secret).toBeFocused()
    const key = await secret.inputValue()
    const status = async () => (await request.get('/whoami', { headers: { Authorization: `Bearer ${key}` } })).status()
    expect(await status()).toBe(200)
    const row = page.getByRole('row', { name: /for the night shift/ })
    await expect(row).toContainText('run')
    await axe()
    await page.getByRole('button', { name: 'Hide it' }).click()
    await expect(secret).toHaveCount(0)
    await row.getByRole('button', { name: /^Revoke the key/ }).click()
    expect(await status()).toBe(200)
    await row.getByRole('button', { name: /^Revoke the key .* now$/ }).click()
    await expect.poll(status).toBe(401)
    await expect(row.getByRole('button')).toHaveCount(0)
    await context.clearCookies()
  })

  test('a session sees the tenant of its key, and ends with the key', async ({ page, request, allowed, browser, baseURL }) => {
    allowed.push(/401/, /404/) // of the revoked key, and of the other tenant
    const name = 'one'
    const made = await tenant(request, name, 'admin', 'first'), another = await tenant(request, 'two', 'read', 'second')
    await page.goto('/console/')
    await signIn(page, made.key)
    await expect(page.getByRole('banner')).toContainText(`${name}, role admin`)
    await expect(page.locator('tbody a[data-row]')).toHaveText(['first'])
    // Another browser has another session, of the tenant of its own key.
    const other = await browser.newContext({ baseURL: baseURL! })
    const second = await other.newPage()
    await second.goto('/console/')
    await signIn(second, another.key)
    await expect(second.locator('tbody a[data-row]')).toHaveText(['second'])
    // The first session may not choose the tenant of the other.
    const status = (tenant: string) => page.evaluate(async (tenant) => (await fetch('/runs', { headers: { 'Weft-Console': '1', 'Weft-Tenant': tenant } })).status, tenant)
    expect(await status(name)).toBe(200)
    expect(await status('two')).toBe(404) // it does not learn of it
    expect((await request.delete(`/keys/${made.id}`, { headers: made.headers })).ok()).toBe(true)
    await expect(page.getByLabel('Key', { exact: true })).toBeFocused()
    await second.reload()
    await expect(second.locator('tbody a[data-row]')).toHaveText(['second'])
    await other.close()
  })
})
