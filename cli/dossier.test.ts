import { readdir, readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { useBrowser } from '../test/support/browser.ts'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'
import { useSharedShop } from '../test/support/shop.ts'

const service = useService()
const browser = useBrowser()
const folder = useFolder()
const organization = useSharedShop(service, { owner: 'orders', key: 'buyer', name: 'Buyer', type: 'person' })
const attack = `<script>document.title='attacked'</script><img src=x onerror="document.title='attacked'">"'&`

beforeAll(async () => {
  const { send } = organization
  await send('PATCH', '/v1/schema/settings', {
    display_name: 'Northwind Books',
    contact_email: 'privacy@books.example',
  })
  await send('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text: 'Yes, send me the newsletter.' })
  const created = await send('POST', '/v1/people', {
    external_id: 'ada',
    first_name: 'Ada',
    last_name: attack,
    consents: [
      { consent_type_id: 1, channel: 'email', state: true, method: 'web_form', text_version: 1, source: attack },
    ],
    attribute_values: { city: 'London', [attack]: attack, sizes: [38, 39], address: { street: attack } },
  })
  expect(created.status).toBe(201)
  await send('POST', '/v1/stacks/orders', { external_id: 'o-1', attribute_values: { buyer: 'ada', total: 12.5 } })
  await send('PATCH', '/v1/people/ada', { first_name: 'Augusta Ada' })
})

const run = (...args: string[]) =>
  runInProcess(['dossier', ...args], { KITH_URL: service.address, KITH_TOKEN: organization.token }, folder)

describe('kith dossier', () => {
  it('writes the lines of the dossier, by external and by internal identifier', async () => {
    const { code, stdout } = await run('ada')
    expect(code).toBe(0)
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    const expected = (await organization.send('GET', '/v1/people/ada/dossier')).body.data
    expect(lines.slice(1)).toEqual(expected.slice(1))
    const byId = await run('--id', lines[0].person.id)
    expect(byId.stdout.split('\n').slice(1)).toEqual(stdout.split('\n').slice(1))
  })

  it('writes a file that only its owner may read, and overwrites one only with --force', async () => {
    expect((await run('ada', '--output', 'ada.ndjson')).code).toBe(0)
    expect((await stat(join(folder, 'ada.ndjson'))).mode & 0o777).toBe(0o600)
    const refused = await run('ada', '--output', 'ada.ndjson')
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('--force')])
    expect((await run('ada', '--output', 'ada.ndjson', '--format', 'html', '--force')).code).toBe(0)
    expect(await readFile(join(folder, 'ada.ndjson'), 'utf8')).toMatch(/^<!doctype html>/)
  })

  it('writes a page in the language that is asked for, and refuses a language for lines', async () => {
    const { code, stdout } = await run('ada', '--format', 'html', '--language', 'de')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^<!doctype html>\n<html lang="de">[\s\S]*<\/html>\n$/)])
    const refused = await run('ada', '--language', 'de')
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([1, '', expect.stringContaining('--format html')])
  })

  it('names others who had the identifier on the terminal, and not on the page', async () => {
    const { send } = organization
    const { id } = (await send('POST', '/v1/people', { external_id: 'reused' })).body.data
    await send('DELETE', '/v1/people/reused')
    await send('POST', '/v1/people', { external_id: 'reused' })
    for (const format of ['ndjson', 'html']) {
      const { code, stdout, stderr } = await run('reused', '--format', format)
      expect([code, stderr, stdout.includes(id)]).toEqual([0, expect.stringContaining(id), format === 'ndjson'])
    }
  })

  it('fails for a person who never existed, and leaves no file', async () => {
    const { code, stderr } = await run('nobody', '--output', 'nobody.html')
    expect([code, stderr]).toEqual([1, expect.stringContaining('There is no such person.')])
    expect((await readdir(folder)).filter(name => name.startsWith('nobody'))).toEqual([])
  })
})

describe('the page of a dossier', () => {
  const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

  it.each([1_200, 360])('shows every value as text, loads nothing, and fits a window of %i px', async width => {
    expect((await run('ada', '--output', 'ada.html', '--force')).code).toBe(0)
    const url = pathToFileURL(join(folder, 'ada.html')).href
    await browser.open(
      async (page, requested) => {
        await page.goto(url)
        expect(requested).toEqual([url])
        expect(await page.title()).toBe('Personal data held by Northwind Books')
        expect(await page.locator('script, img').count()).toBe(0)
        const text = await page.locator('body').innerText()
        for (const shown of [
          'Augusta Ada',
          attack,
          'London',
          '38',
          'Yes, send me the newsletter.',
          'orders',
          'o-1',
          'by a form on the web',
          'Stored for the first time',
        ])
          expect(text).toContain(shown)
        expect(text).toMatch(/This page is complete\. It shows \d+ entries\./)
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
        await page.evaluate(await axe)
        const { violations } = (await page.evaluate('axe.run()')) as {
          violations: { id: string; nodes: { html: string }[] }[]
        }
        expect(violations.map(({ id, nodes }) => [id, nodes[0]!.html])).toEqual([])
      },
      { viewport: { width, height: 800 }, bypassCSP: true },
    )
  })
})
