// Writes pictures of all pages of the console, filled with the sample shop, to docs/console/images. Into another folder, it writes
// dark and narrow ones too, in the language of the locale:
//   node scripts/with-service.ts node scripts/console-screenshots.ts [folder] [locale]

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { createClient } from '../client/index.ts'
import { scopes } from '../src/route/scopes.ts'
import { launchChromium } from '../test/support/chromium.ts'

const { KITH_URL: url, KITH_TOKEN: token } = process.env
if (!url || !token) throw new Error('usage: node scripts/with-service.ts node scripts/console-screenshots.ts')

const [otherFolder, locale = 'en-GB'] = process.argv.slice(2)
const folder = otherFolder ?? join(import.meta.dirname, '../docs/console/images')

/** The pages by the names of their pictures. */
const pages = {
  people: '/people',
  person: '/people/customer-12',
  stacks: '/records',
  records: '/records/orders',
  reports: '/reports?owner=orders&measure=sum&of=attribute_values.total&group=attribute_values.placed_at&by=month',
  schema: '/schema',
  import: '/import',
  export: '/export',
  consents: '/consents',
  ledger: '/ledger',
  deliverability: '/deliverability',
  sources: '/deliverability?tab=sources',
  changes: '/changes',
  webhooks: '/webhooks',
  operations: '/operations',
  access: '/access',
}

const views = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  { name: 'phone', colorScheme: 'light', viewport: { width: 360, height: 740 } },
] as const

const temporary = mkdtempSync(join(tmpdir(), 'kith-screenshots-'))
mkdirSync(folder, { recursive: true })
try {
  execFileSync(process.execPath, [join(import.meta.dirname, '../cli/main.ts'), 'seed'], { stdio: 'inherit' })
  const { deliverability } = createClient({ url, token })
  const types = ['hard_bounce', 'complaint', 'hard_bounce', 'soft_bounce', 'soft_bounce', 'soft_bounce'] as const
  const events = types.map((type, index) => ({
    ...{ channel: 'email' as const, external_id: `customer-${Math.min(index, 3) + 5}`, type, provider: 'ses' },
    at: new Date(Date.now() - (20 - index) * 86_400_000).toISOString(),
  }))
  await deliverability.record(events)
  const topic_arn = 'arn:aws:sns:eu-central-1:123456789012:mail'
  await deliverability.addSource({ key: 'newsletter', provider: 'ses', topic_arn })
  await deliverability.addSource({ key: 'receipts', provider: 'postmark' })
  const browser = await launchChromium(temporary)
  for (const view of otherFolder ? views : views.slice(0, 1)) await takePictures(browser, view)
  await browser.close()
} finally {
  rmSync(temporary, { recursive: true, force: true })
}

/** Signs in with a client's credentials, and takes a picture of every page. */
async function takePictures(browser: Browser, { name, colorScheme, viewport }: (typeof views)[number]) {
  const client = createClient({ url: url!, token: token! })
  const { client_id, client_secret } = await client.access.clients.create({ name: 'screenshots', scopes: [...scopes] })
  const context = await browser.newContext({ colorScheme, viewport, locale })
  const page = await context.newPage()
  await page.goto(`${url}/console/sign-in`, { waitUntil: 'networkidle' })
  await page.screenshot({ path: join(folder, `sign-in-${name}.png`) })
  // Labels differ between languages. The button below the form of accounts shows that of clients.
  await page.locator('main form ~ button').click()
  await page.locator('form input').nth(0).fill(client_id)
  await page.locator('form input').nth(1).fill(client_secret)
  await page.locator('form button[type=submit]').click()
  await page.waitForURL(address => !address.pathname.endsWith('/sign-in'))
  for (const [picture, path] of Object.entries(pages)) {
    await page.goto(`${url}/console${path}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    // A page with a live feed never falls silent, so this does not wait for the network.
    await page.waitForTimeout(2_000)
    await page.getByText('Loading…').first().waitFor({ state: 'hidden' })
    await page.screenshot({ path: join(folder, `${picture}-${name}.png`) })
  }
  await context.close()
}
