import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CheckoutCopy, copyCheckout } from './support/checkout-copy.ts'

// The recipes of CONTRIBUTING.md for a field of people, a rule of attributes and an event, done in one copy of the checkout.

const compiler = 'node_modules/typescript/bin/tsc'
/** The files of the console whose types demand texts for a new line of a list. */
const texts = [
  'src/values/profile-labels.ts',
  'console/src/schema/rule-labels.ts',
  'console/src/changes/changes-page.tsx',
  'console/src/history/history.tsx',
]
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
    'src/values/profile-fields.ts',
    '  date_of_birth: {',
    "  nickname: { description: 'What friends say.', isSearched: true },\n  date_of_birth: {",
  )
  addRule()
  addEvent()
  for (const words of [['scripts/schema.ts', '--write'], ['scripts/wire.ts'], [compiler, '--project', 'client']])
    expect(await copy.run(...words)).toMatchObject({ code: 0 })
  const words = ['scripts/with-service.ts', process.execPath, '--eval', announce]
  service = spawn(process.execPath, words, { cwd: copy.path, stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = await once(createInterface({ input: service.stdout! }), 'line')
  ;({ url, token } = JSON.parse(line))
}, 300_000)

/** Texts have at most this many characters. */
function addRule() {
  copy.edit(
    'src/values/attribute-rules.ts',
    '  minimum: {',
    "  max_length: { description: 'The most characters.', schema: nullable(Type.Integer({ minimum: 1 })), types: ['text'] },\n  minimum: {",
  )
  copy.edit(
    'src/attributes/rules.ts',
    '  minimum: (minimum',
    "  max_length: (most, value) => (String(value).length > most ? 'has too many characters' : undefined),\n  minimum: (minimum",
  )
}

/** An attribute that is archived is not updated, but archived. */
function addEvent() {
  copy.edit(
    'src/organizations/logged-changes.ts',
    '  merge: {',
    "  archive: { event: 'archived', description: 'It is out of use.' },\n  merge: {",
  )
  const allowed = "'create', 'update', 'delete', 'restore', 'merge', 'unmerge', 'erase', 'archive'"
  copy.write(
    'migrations/0100_archive.sql',
    `-- Attributes can be archived.\n\nalter table changes drop constraint changes_operation_check,\n  add constraint changes_operation_check check (operation in (${allowed}));\n`,
  )
  copy.edit(
    'src/organizations/change-organization.ts',
    "'update', 'delete'] as const satisfies",
    "'update', 'delete', 'archive'] as const satisfies",
  )
  copy.edit(
    'src/attributes/attributes.ts',
    "operation: 'update', ...changed",
    "operation: state === 'archived' ? 'archive' : 'update', ...changed",
  )
  copy.edit('src/entities/write/write.ts', "  merge: 'deleted',", "  merge: 'deleted',\n  archive: 'updated',")
  for (const language of ['en', 'de', 'fr', 'it', 'es'])
    copy.edit(
      `src/rights/dossier-page/languages/${language}.ts`,
      "    merge: '",
      "    archive: 'Archived',\n    merge: '",
    )
}

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
    expect(copy.read('docs/api-people.md')).toContain(
      '| `nickname` | text, [searched](queries.md#search) | What friends say. |',
    )
  })
})

describe('a rule of attributes that is one line, its check and its texts', () => {
  it('is declared, read, checked and removed', async () => {
    const declaration = { key: 'motto', owner: 'people', type: 'text', max_length: 5 }
    const motto = await send('POST', '/v1/schema/attributes', declaration)
    expect(motto).toMatchObject({ max_length: 5, pattern: null })
    const refused = await send('PATCH', '/v1/people/ada', { attribute_values: { motto: 'too long' } })
    const details = [{ path: '/attribute_values/motto', message: 'has too many characters' }]
    expect(refused).toMatchObject({ error: 'invalid_parameter', details })
    expect(await send('PATCH', '/v1/people/ada', { attribute_values: { motto: 'short' } })).toBe(true)
    const violations = (query: string) => send('GET', `/v1/schema/attributes/${motto.id}/violations${query}`)
    expect(await violations('?max_length=4')).toMatchObject({
      items: [{ external_id: 'ada', rules: ['max_length'] }],
    })
    expect(await violations('')).toMatchObject({ items: [] })
    expect(await send('PATCH', `/v1/schema/attributes/${motto.id}`, { max_length: null })).toMatchObject({
      max_length: null,
    })
    const refusal = await send('POST', '/v1/schema/attributes', { ...declaration, key: 'age', type: 'number' })
    expect(refusal).toMatchObject({ details: [{ path: '/max_length', message: 'applies only to type `text`' }] })
  })

  it('is in the file of `kith schema`, the OpenAPI document, the types and lists of the client and the documentation', async () => {
    await send('POST', '/v1/schema/attributes', { key: 'slogan', owner: 'people', type: 'text', max_length: 5 })
    expect(await kith('schema', 'pull', 'pulled.json')).toMatchObject({ code: 0 })
    expect(copy.read('pulled.json')).toContain('"max_length": 5')
    const { components } = await send('GET', '/openapi.json')
    expect(components.schemas.Attribute.properties).toHaveProperty('max_length')
    expect(copy.read('client/dist/src/wire.d.ts')).toContain('max_length: number | null')
    expect(copy.read('client/src/vocabulary.ts')).toContain("max_length: { types: ['text'], operand: 'number' }")
    expect(copy.read('docs/api-people.md')).toContain('| `max_length` | `text` | The most characters. |')
  })
})

describe('an event that is one line, a migration, a write and its texts', () => {
  it('is in the feed, which selects it, and in webhooks', async () => {
    const webhook = { url: 'https://receiver.example/', events: ['attribute.archived'] }
    const { id: webhook_id } = await send('POST', '/v1/webhooks', webhook)
    const { id } = await send('POST', '/v1/schema/attributes', { key: 'old', owner: 'people', type: 'text' })
    await send('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    const { items } = await send('GET', '/v1/changes?operation=archive')
    expect(items).toMatchObject([{ subject: 'attribute', operation: 'archive', id, after: { state: 'archived' } }])
    await expect
      .poll(() => send('GET', `/v1/webhooks/${webhook_id}/deliveries`), { timeout: 30_000 })
      .toMatchObject({ items: [{ sequence: items[0].sequence, type: 'attribute.archived' }] })
  })

  it('is an event of streams', async () => {
    const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' }
    const { body } = await fetch(`${url}/v1/changes?operation=archive`, { headers })
    let text = ''
    for await (const chunk of body!) {
      text += Buffer.from(chunk).toString()
      if (text.includes('data: ')) break
    }
    expect(text).toContain('event: attribute.archived')
  })

  it('is in the OpenAPI document, the types and lists of the client and the documentation', async () => {
    const { components } = await send('GET', '/openapi.json')
    expect(components.schemas.Change.properties.operation.enum).toContain('archive')
    expect(copy.read('client/dist/src/wire.d.ts')).toContain("'restored' | 'archived'")
    expect(copy.read('client/src/vocabulary.ts')).toContain("'archive'")
    expect(copy.read('docs/changes.md')).toContain('| `archive` | `archived` | It is out of use. |')
  })
})

describe('the console', () => {
  it('needs texts for a new line of a list in each language, and then shows it in its lists and forms', async () => {
    copy.write(
      'console/texts.json',
      JSON.stringify({
        extends: './tsconfig.json',
        include: texts.map(file => file.replace(/^console\/|^/, match => (match === '' ? '../' : ''))),
      }),
    )
    const { output } = await copy.run(compiler, '--noEmit', '--project', 'console/texts.json')
    // The pages for people have five languages, and the console has three.
    for (const [missing, languages] of [
      ['nickname', 5],
      ['max_length', 3],
    ])
      expect(output.match(new RegExp(`TS2741: Property '${missing}' is missing`, 'g')), output).toHaveLength(
        Number(languages),
      )
    for (const file of ['changes/changes-page', 'history/history'])
      expect(output).toMatch(new RegExp(`src/${file}\\.tsx.*\n *Property 'archive' does not exist`))
    copy.write(
      texts[0]!,
      copy.read(texts[0]!).replaceAll('    date_of_birth: ', "    nickname: 'Nickname',\n    date_of_birth: "),
    )
    for (const name of ['Minimum', 'Minimum', 'Minimo'])
      copy.edit(
        texts[1]!,
        `\n    minimum: { name: '${name}'`,
        `    max_length: { name: 'Characters' },\n    MINIMUM: { name: '${name}'`,
      )
    copy.write(texts[1]!, copy.read(texts[1]!).replaceAll('MINIMUM', 'minimum'))
    for (const file of ['console/src/changes/messages.ts', 'console/src/history/messages.ts'])
      copy.write(
        file,
        copy.read(file).replace('    merge: [', "    archive: ['archived', 'archiviert', 'archiviato'],\n    merge: ["),
      )
    expect(await copy.run(compiler, '--noEmit', '--project', 'console')).toEqual({ code: 0, output: '' })
    expect(await copy.run(compiler, '--noEmit')).toEqual({ code: 0, output: '' })
    const { output: listed } = await copy.run(
      '--input-type=module-typescript',
      '--eval',
      `import { changeOperations, ruleNames } from '@kith/client'
       import { plainFields } from './console/src/entity/fields.ts'
       import { fieldsOf } from './console/src/filters/fields.ts'
       import { fieldLabels } from './console/src/entity/field-labels.ts'
       import { emptyDraft, newAttributeOf } from './console/src/schema/attribute-draft.ts'
       const fields = fieldsOf('people', undefined, { fields: fieldLabels.en })
       const draft = { ...emptyDraft, key: 'motto', rules: { ...emptyDraft.rules, max_length: '5' } }
       console.log(JSON.stringify({
         isPlain: plainFields.includes('nickname'), field: fields.find(({ name }) => name === 'nickname'),
         isRule: ruleNames.includes('max_length'), body: newAttributeOf('people', draft), isOperation: changeOperations.includes('archive'),
       }))`,
    )
    expect(JSON.parse(listed)).toEqual({
      ...{ isPlain: true, field: { name: 'nickname', label: 'Nickname', type: 'text' } },
      ...{
        isRule: true,
        body: { key: 'motto', owner: 'people', type: 'text', name: 'motto', cardinality: 'one', max_length: 5 },
      },
      isOperation: true,
    })
  }, 300_000)

  it('leaves the statements as their callers have them', async () => {
    expect(await copy.run('scripts/check-statements.ts')).toMatchObject({ code: 0 })
  }, 300_000)
})
