import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from '@playwright/test'

// The time limits detect a hang; no test depends on them.
const hang = 30 * 60_000
export default defineConfig({
  testDir: 'e2e', outputDir: join(process.env.WEFT_RESULTS ?? tmpdir(), 'weft-console'), fullyParallel: false, workers: 1, retries: 0, timeout: hang, reporter: [['list']], forbidOnly: true,
  expect: { timeout: hang },
  use: {
    baseURL: process.env.WEFT_URL!, locale: 'en-GB', timezoneId: 'UTC', contextOptions: { reducedMotion: 'reduce' }, viewport: { width: 1280, height: 900 },
    launchOptions: { executablePath: process.env.CHROMIUM!, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--font-render-hinting=none'] },
  },
  // Tests look at both schemes where the colours matter (axe in fixture.ts); pictures are made in each.
  projects: (['light', 'dark'] as const).slice(0, process.env.WEFT_PICTURES ? 2 : 1).map((scheme) => ({ name: scheme, use: { colorScheme: scheme } })),
})
