import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CheckoutCopy, copyCheckout } from './support/checkout-copy.ts'

// The recipe of CONTRIBUTING.md for a field of people, done in a copy of the checkout.

const compiler = 'node_modules/typescript/bin/tsc'
const labels = 'console/src/entity/field-labels.ts'
const announce = `console.log(JSON.stringify({ url: process.env.KITH_URL, token: process.env.KITH_TOKEN })); process.stdin.resume()`

let copy: CheckoutCopy
let service: ChildProcess
let url: string
let token: string

beforeAll(async () => {
  copy = copyCheckout()
  copy.write(
    'migrations/0099_nickname.sql',
    '-- People have a nickname.\n\nalter table entities add column nickname text;\n',
  )
  copy.edit(
    'src/profile-fields.ts',
    '  date_of_birth: {',
    "  nickname: { description: 'What friends say.', isSearched: true },\n  date_of_birth: {",
  )
  for (const words of [['scripts/schema.ts', '--write'], ['scripts/wire.ts'], [compiler, '--project', 'client']])
    expect(await copy.run(...words)).toMatchObject({ code: 0 })
  const words = ['scripts/with-service.ts', process.execPath, '--eval', announce]
  service = spawn(process.execPath, words, { cwd: copy.path, stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = await once(createInterface({ input: service.stdout! }), 'line')
  ;({ url, token } = JSON.parse(line))
}, 300_000)

afterAll(async () => {
  service?.stdin?.end()
  if (service?.exitCode === null) await once(service, 'exit')
  copy?.remove()
})

async function send(method: string, path: string, body?: unknown) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const response = await fetch(url + path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('application/json')) return text
  return JSON.parse(text).data ?? JSON.parse(text)
}

const namesIn = ({ items }: { items: { external_id: string }[] }) => items.map(({ external_id }) => external_id)

const kith = (...words: string[]) => copy.run('cli/main.ts', ...words, '--url', url, '--token', token)

describe('a field that is one line, a migration and its labels', () => {
  it('is written, read and logged', async () => {
    const ada = await send('POST', '/v1/people', { external_id: 'ada', nickname: 'Countess' })
    expect(ada).toMatchObject({ nickname: 'Countess', version: 1 })
    await send('PATCH', '/v1/people/ada', { nickname: 'Enchantress' })
    expect(await send('GET', '/v1/people/ada')).toMatchObject({ nickname: 'Enchantress', version: 2 })
    const { items } = await send('GET', '/v1/people/ada/history?limit=1')
    expect(items[0]).toMatchObject({ before: { nickname: 'Countess' }, after: { nickname: 'Enchantress' } })
    expect(await send('GET', '/v1/people/ada?version=1')).toMatchObject({ nickname: 'Countess' })
  })

  it('is filtered, sorted, grouped and searched', async () => {
    await send('POST', '/v1/people', { external_id: 'grace', nickname: 'Amazing' })
    expect(
      namesIn(await send('POST', '/v1/people/filter', { filter: { nickname: { $starts_with: 'Ench' } } })),
    ).toEqual(['ada'])
    const sorted = { sort: { field: 'nickname' }, fields: ['external_id', 'nickname'] }
    await expect
      .poll(() => send('POST', '/v1/people/list', sorted), { timeout: 30_000 })
      .toMatchObject({
        items: [
          { external_id: 'grace', nickname: 'Amazing' },
          { external_id: 'ada', nickname: 'Enchantress' },
        ],
      })
    const { groups } = await send('POST', '/v1/people/aggregate', { group_by: ['nickname'] })
    expect(groups).toHaveLength(2)
    const found = () => send('POST', '/v1/people/search', { text: 'enchantres' }).then(({ items }) => items?.[0])
    await expect.poll(found, { timeout: 30_000 }).toMatchObject({ external_id: 'ada' })
  })

  it('is imported and exported, as CSV and as JSON lines', async () => {
    copy.write('people.csv', 'external_id,nickname\nmary,Fairy\n')
    expect(await kith('import', 'people', 'people.csv')).toMatchObject({ code: 0 })
    expect(await send('GET', '/v1/people/mary')).toMatchObject({ nickname: 'Fairy' })
    const csv = (await kith('export', 'people', '--format', 'csv')).output.split('\n')
    expect(csv[0]!.split(',')).toContain('nickname')
    expect(csv.find(line => line.includes('mary'))).toContain('Fairy')
    expect(await send('POST', '/v1/people/export', {})).toContain('"nickname":"Fairy"')
  })

  it('is filled by a merge, and told by a dossier', async () => {
    await send('POST', '/v1/people', { external_id: 'm' })
    const preview = await send('POST', '/v1/people/m/merge', { from: 'mary', dry_run: true })
    expect(preview).toMatchObject({ person: { nickname: 'Fairy' }, changes: { fields: [{ path: '/nickname' }] } })
    await send('POST', '/v1/people/m/merge', { from: 'mary' })
    expect(await send('GET', '/v1/people/m')).toMatchObject({ nickname: 'Fairy' })
    expect(await send('GET', '/v1/people/m/dossier')).toContain('"nickname":"Fairy"')
    expect((await kith('dossier', 'm', '--format', 'html')).output).toContain('Nickname')
  })

  it('is a key of webhooks, and is erased', async () => {
    const webhook = { url: 'https://receiver.example/', events: ['person.*'], keys: ['nickname'] }
    expect(await send('POST', '/v1/webhooks', webhook)).toMatchObject({ keys: ['nickname'] })
    await send('POST', '/v1/people/grace/erase', { reason: 'request' })
    expect(JSON.stringify(await send('GET', '/v1/changes'))).not.toContain('Amazing')
  })

  it('is in the OpenAPI document, the types of the client and the documentation', async () => {
    const { components } = await send('GET', '/openapi.json')
    expect(components.schemas.Person.properties).toHaveProperty('nickname')
    expect(copy.read('client/dist/src/wire.d.ts')).toContain('nickname: string | null')
    expect(copy.read('docs/api.md')).toContain('| `nickname` | text, [searched](#search) | What friends say. |')
  })

  it('needs a label in each language of the console, which then shows, edits, filters and sorts it', async () => {
    copy.write(
      'console/labels.json',
      JSON.stringify({ extends: './tsconfig.json', include: ['src/entity/field-labels.ts'] }),
    )
    const { output } = await copy.run(compiler, '--noEmit', '--project', 'console/labels.json')
    expect(output.match(/Property 'nickname' is missing/g)).toHaveLength(3)
    for (const [before, label] of Object.entries({
      'Date of birth': 'Nickname',
      Geburtsdatum: 'Spitzname',
      'Data di nascita': 'Soprannome',
    }))
      copy.edit(labels, `    date_of_birth: '${before}',`, `    nickname: '${label}',\n    date_of_birth: '${before}',`)
    expect(await copy.run(compiler, '--noEmit', '--project', 'console')).toEqual({ code: 0, output: '' })
    expect(await copy.run(compiler, '--noEmit')).toEqual({ code: 0, output: '' })
    const listed = await copy.run(
      '--input-type=module-typescript',
      '--eval',
      `import { plainFields } from './console/src/entity/fields.ts'
       import { fieldsOf } from './console/src/filters/fields.ts'
       import { fieldLabels } from './${labels}'
       const fields = fieldsOf('people', undefined, { fields: fieldLabels.en })
       console.log(plainFields.includes('nickname'), fields.find(({ name }) => name === 'nickname'))`,
    )
    expect(listed.output).toContain("true { name: 'nickname', label: 'Nickname', type: 'text' }")
  }, 300_000)

  it('leaves the statements as their callers have them', async () => {
    expect(await copy.run('scripts/check-statements.ts')).toMatchObject({ code: 0 })
  }, 300_000)
})
