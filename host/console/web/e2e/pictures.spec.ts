// The pictures of docs/console.md: make console-pictures.
import { readFileSync } from 'node:fs'
import type { APIRequestContext, Page } from '@playwright/test'
import { expect, test } from './fixture'

const folder = process.env.WEFT_PICTURES
test.skip(!folder, 'makes pictures only if they have a folder (WEFT_PICTURES)')
test.use({ viewport: { width: 1280, height: 800 } })

const scheme = () => test.info().project.name
async function picture(page: Page, name: string) {
  await expect(page.getByText('Loading…')).toHaveCount(0)
  await page.screenshot({ path: `${folder}/${name}-${scheme()}.png`, animations: 'disabled', caret: 'hide' })
}
async function begin(request: APIRequestContext, workflow: string, handler_id: string, start_event: object, more: object = {}) {
  expect((await request.post(`/workflows/${workflow}/run-nowait`, { data: { handler_id, start_event, ...more } })).ok()).toBe(true)
}
async function answer(request: APIRequestContext, id: string, role: string, approved: boolean) {
  await expect.poll(async () => JSON.stringify((await (await request.get(`/runs/${id}`)).json()).waiting_for ?? '')).toContain(role)
  expect((await request.post(`/events/${id}`, { data: { event: { type: 'HumanResponseEvent', value: { role, approved } } } })).ok()).toBe(true)
}

test('pictures of all pages', async ({ page, request, allowed }) => {
  allowed.push(/status of 4\d\d/)
  if (scheme() === 'light') {
    await begin(request, 'wordcount', 'letter-of-march', { text: 'the cat and the dog and the bird' })
    await begin(request, 'quiz', 'pub-quiz-17', { action: 'start' }, { session: 'pub-quiz' })
    await begin(request, 'counter', 'visitors', {})
    await begin(request, 'flaky', 'import-0412', { fail_times: 9, max_attempts: 2 })
    await begin(request, 'approval', 'desk-for-the-library', { item: 'desk' })
    await answer(request, 'desk-for-the-library', 'manager', true)
    await answer(request, 'desk-for-the-library', 'finance', true)
    await begin(request, 'approval', 'laptop-for-ada', { item: 'laptop' })
    await answer(request, 'laptop-for-ada', 'manager', true)
    await begin(request, 'human', 'number-please', {})
    await begin(request, 'approval', 'a-very-long-name-of-a-handler-that-somebody-chose-because-nobody-said-that-it-could-be-shorter', { item: 'chair' })
    await request.patch('/sessions/pub-quiz/state', { data: { title: 'Capitals of Europe' } })
  }
  const open = async (path: string, ready: string) => { await page.goto(`/console/${path}`); await expect(page.locator(ready).first()).toBeVisible() }
  await open('', 'tbody tr')
  await picture(page, 'runs')
  await page.keyboard.press('?')
  await expect(page.getByRole('dialog')).toBeVisible()
  await picture(page, 'keys')
  await open('?phase=blocked', '.empty')
  await picture(page, 'runs-none')
  await open('runs/laptop-for-ada', '[data-asked]')
  await expect(page.locator('[data-node=approve]')).toBeVisible()
  await picture(page, 'run')
  await open('runs/desk-for-the-library?at=4', '[data-state-at]')
  await page.locator('#journal').evaluate((el) => el.closest('section')!.scrollIntoView())
  await picture(page, 'journal')
  await page.keyboard.press('e')
  await expect(page.getByRole('dialog').locator('textarea').first()).not.toHaveValue('')
  await picture(page, 'fork')
  await open('runs/letter-of-march', '[data-node]')
  await expect(page.locator('[data-at]')).toBeVisible()
  await page.getByRole('radio', { name: 'Fuel' }).check()
  await page.locator('#graph').evaluate((el) => el.closest('section')!.scrollIntoView())
  await picture(page, 'graph')
  await open('runs/nobody', '.problem')
  await picture(page, 'run-unknown')
  await open('compare?a=desk-for-the-library&b=laptop-for-ada', 'tr[data-differs]')
  await picture(page, 'compare')
  await open('workflows', 'tbody tr')
  await picture(page, 'workflows')
  await open('workflows/approval', '[data-node]')
  await picture(page, 'workflow')
  await open('questions', '#answer input')
  await picture(page, 'questions')
  await open('start/approval', 'form input')
  await picture(page, 'start')
  await open('sessions', 'tbody tr')
  await picture(page, 'sessions')
  await open('sessions/pub-quiz', '[data-state]')
  await picture(page, 'session')
  await open('plugins', 'tbody tr')
  await page.getByLabel('Drop a .wasm file here, or choose one').setInputFiles({ name: 'approval.wasm', mimeType: 'application/wasm', buffer: readFileSync(process.env.WEFT_WASM!) })
  await expect(page.getByRole('alert')).not.toBeEmpty()
  await picture(page, 'plugins-refused')
  await page.getByLabel(/^Name of the plugin/).fill('joke')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: /joke would be/ })).toBeVisible()
  await picture(page, 'plugins')
  for (const part of ['quotas', 'audit', 'server']) {
    await open(`operate/${part}`, 'tbody tr')
    await picture(page, `operate-${part}`)
  }
  await page.setViewportSize({ width: 380, height: 800 })
  await open('', 'tbody tr')
  await picture(page, 'phone-runs')
  await open('runs/laptop-for-ada', '[data-asked]')
  await picture(page, 'phone-run')
})

test.describe('with keys', () => {
  test.use({ baseURL: process.env.WEFT_KEYED_URL! })
  test('pictures of the sign-in and of keys', async ({ page, request }) => {
    await page.goto('/console/operate/keys')
    await expect(page.getByLabel('Key', { exact: true })).toBeFocused()
    await picture(page, 'sign-in')
    if (scheme() === 'light') expect((await request.post('/keys', { headers: { Authorization: `Bearer ${process.env.WEFT_KEY!}` }, data: { name: 'night shift', role: 'run' } })).ok()).toBe(true)
    await page.keyboard.type(process.env.WEFT_KEY!)
    await page.keyboard.press('Enter')
    await expect(page.locator('tbody tr').first()).toBeVisible()
    await picture(page, 'operate-keys')
  })
})
