import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { launchChromium } from '../test/support/chromium.ts'
import { insertManyPeople } from '../test/support/many-people.ts'
import { inDatabase, serverVersion } from './database.ts'
import { type Service, startService } from './environment.ts'
import { withPostgres } from './run.ts'
import { checkout } from './side.ts'

const print = (line = '') => process.stdout.write(`${line}\n`)
const organizationKey = 'default'

/** Measures the page of people in Chromium: the first paint, the time from a key to its results, and the frames of scrolling. */
async function main() {
  const { values } = parseArgs({
    options: {
      people: { type: 'string', default: '100000' },
      loads: { type: 'string', default: '9' },
      only: { type: 'string', default: 'paint,keys,scroll' },
    },
  })
  const people = Number(values.people)
  const parts = values.only.split(',')
  await withPostgres(async ({ postgres, acquire }) => {
    await postgres.createDatabase('console')
    const service = await acquire(
      () => startService(postgres, checkout, 'console'),
      started => started.stop(),
    )
    await inDatabase(service.url, async client => {
      const { rows } = await client.query('select id from organizations where key = $1', [organizationKey])
      await insertManyPeople((text, given) => client.query(text, given), rows[0].id, people)
      await client.query('vacuum (analyze)')
    })
    print(`${people.toLocaleString('en')} people, PostgreSQL ${await serverVersion(service)}`)
    const folder = await acquire(
      () => mkdtemp(join(tmpdir(), 'kith-console-')),
      path => rm(path, { recursive: true, force: true }),
    )
    const browser = await acquire(
      () => launchChromium(folder),
      opened => opened.close(),
    )
    await createPerson(browser, service)
    if (parts.includes('paint')) await measurePaint(browser, service, Number(values.loads))
    if (parts.includes('keys')) await inPage(browser, service, measureKeys)
    if (parts.includes('scroll')) await inPage(browser, service, measureScrolling)
  })
}

/** A browser context that is signed in. Nothing is in its cache. */
async function signIn(browser: Browser, { url, address }: Service): Promise<BrowserContext> {
  const words = ['cli/main.ts', 'console', '--org', organizationKey]
  const environment = { PATH: process.env.PATH, DATABASE_URL: url }
  const link = execFileSync(process.execPath, words, { cwd: checkout, env: environment, encoding: 'utf8' })
  // The policy of the pages forbids the expressions that the measurement waits for.
  const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 800 }, bypassCSP: true })
  const response = await context.request.post(`${address}/console/session`, {
    data: { code: link.trim().split('code=')[1] },
    headers: { 'Sec-Fetch-Site': 'same-origin' },
  })
  if (!response.ok()) throw new Error(`The sign-in failed: ${await response.text()}`)
  return context
}

/** An organization without a change has no index of words, and the people were inserted without one. */
async function createPerson(browser: Browser, service: Service) {
  const context = await signIn(browser, service)
  const response = await context.request.post(`${service.address}/v1/people`, {
    data: { external_id: 'first' },
    headers: { 'Sec-Fetch-Site': 'same-origin' },
  })
  if (!response.ok()) throw new Error(`The person was refused: ${await response.text()}`)
  await context.close()
}

async function inPage(browser: Browser, service: Service, work: (page: Page) => Promise<void>) {
  const context = await signIn(browser, service)
  const page = await context.newPage()
  await page.goto(`${service.address}/console/people`)
  await page.locator(rowLink).first().waitFor()
  await work(page)
  await context.close()
}

const rowLink = '[role=table] [role=cell] a'

/** Notes when the first row is painted: in the frame after it is in the document. */
const watchFirstRow = `new MutationObserver((_, observer) => {
  if (!document.querySelector('${rowLink}')) return
  observer.disconnect()
  requestAnimationFrame(() => setTimeout(() => { globalThis.firstRowMs = performance.now() }))
}).observe(document, { childList: true, subtree: true })`

/** Loads the page anew, with an empty cache and a processor that is four times slower. */
async function measurePaint(browser: Browser, service: Service, loads: number) {
  const shells: number[] = []
  const rows: number[] = []
  for (let load = 0; load < loads; load++) {
    const context = await signIn(browser, service)
    const page = await context.newPage()
    const session = await context.newCDPSession(page)
    await session.send('Emulation.setCPUThrottlingRate', { rate: 4 })
    await page.addInitScript(watchFirstRow)
    await page.goto(`${service.address}/console/people`)
    // A processor that is busy otherwise may note the paint late.
    await page.waitForFunction(`globalThis.firstRowMs && performance.getEntriesByName('first-contentful-paint').length`)
    rows.push(await page.evaluate<number>('firstRowMs'))
    shells.push(await page.evaluate<number>(`performance.getEntriesByName('first-contentful-paint')[0].startTime`))
    await context.close()
  }
  printTimes('first contentful paint, processor four times slower', shells)
  printTimes('first row painted, processor four times slower', rows)
}

const words = ['lorenzo', 'whitaker', 'jurgen', 'quispe', 'okafor am', 'shafer', 'customer-777', 'person4321@']

/** Types words letter by letter, and measures from each key to the frame after its results are in the document. */
async function measureKeys(page: Page) {
  const search = page.getByRole('searchbox')
  // The index of words is built when the first search needs it.
  await search.fill('lorenzo')
  await page.waitForFunction(isShown('lorenzo'), undefined, { timeout: 180_000 })
  const times: number[] = []
  for (const word of words) {
    await search.fill('')
    await page.waitForFunction(isShown(''))
    for (let length = 1; length <= word.length; length++) {
      await page.waitForTimeout(150)
      const typed = word.slice(0, length)
      await page.evaluate(watchKey(typed.trim()))
      await page.keyboard.press(word[length - 1] === ' ' ? 'Space' : word[length - 1]!)
      times.push(await page.evaluate<number>('shownMs'))
    }
  }
  printTimes(`key to results, ${times.length} keys`, times)
}

/** Whether the list shows the results for a text: those of the address, and none of before. */
const isShown = (text: string) => `(
  (new URL(location.href).searchParams.get('text') ?? '').replaceAll('"', '').trim() === ${JSON.stringify(text)} &&
  !document.querySelector('main [aria-busy=true]') &&
  document.querySelector('${rowLink}, main [class*=emptyTitle]') !== null
)`

/** Makes `shownMs` the time from the next key to the frame that shows its results. */
const watchKey = (text: string) => `void (globalThis.shownMs = new Promise(resolve => {
  addEventListener('keydown', ({ timeStamp }) => {
    const look = () => ${isShown(text)} ? setTimeout(() => resolve(performance.now() - timeStamp)) : requestAnimationFrame(look)
    requestAnimationFrame(look)
  }, { once: true, capture: true })
}))`

/** Scrolls with a steady speed, and counts the frames that were not drawn in time. */
async function measureScrolling(page: Page) {
  const session = await page.context().newCDPSession(page)
  await page.evaluate(`(() => {
    globalThis.frames = []
    const note = time => { frames.push(time); requestAnimationFrame(note) }
    requestAnimationFrame(note)
  })()`)
  for (const speed of [1_000, 4_000, 12_000]) {
    await page.evaluate('frames.length = 0')
    await session.send('Input.synthesizeScrollGesture', { x: 700, y: 500, yDistance: -speed * 5, speed })
    const times = await page.evaluate<number[]>('frames')
    const gaps = times.slice(1).map((time, index) => time - times[index]!)
    const expected = gaps.reduce((sum, gap) => sum + Math.max(1, Math.round(gap / frameMs)), 0)
    const dropped = (100 * (expected - gaps.length)) / expected
    const rows = await page.evaluate<number>(`document.querySelectorAll('${rowLink}').length`)
    print(
      `scrolling at ${speed} px/s: ${dropped.toFixed(1)} % of ${expected} frames dropped, longest gap ${Math.max(...gaps).toFixed(0)} ms, ${rows} rows drawn`,
    )
  }
}

const frameMs = 1_000 / 60

function printTimes(label: string, times: number[]) {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!.toFixed(0)
  print(`${label}: median ${at(0.5)} ms, p95 ${at(0.95)} ms, max ${at(1)} ms`)
}

await main()
