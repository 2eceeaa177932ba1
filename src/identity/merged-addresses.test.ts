import { expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { searchFollower } from '../entities/indexes/search-index.ts'
import { retentionFollower } from '../rights/retention.ts'

// A merge loses no address: the email and phone of the merged person lead to the survivor.

const service = useOwnService()
const shop = useShop(service)

const old = { email: 'Ada@Old.example', mobile_prefix: '+39', mobile_number: '333 1234567' }
const own = { email: 'ada@new.example', mobile_number: '+4915112345678' }
const mobile = '+393331234567'

const create = (external_id: string, body: object = {}) => shop.ok('POST', '/v1/people', { external_id, ...body })
const merge = (into: string, from: string, body: object = {}) =>
  shop.ok('POST', `/v1/people/${into}/merge`, { from, ...body })
const unmerge = (into: string, from: string) => shop.ok('POST', `/v1/people/${into}/unmerge`, { from })
type Named = { external_id: string | null }
const namesOf = ({ items }: { items: Named[] }) => items.map(({ external_id }) => external_id)
const lookUp = async (body: object) => namesOf(await shop.ok('POST', '/v1/people/lookup', body))
const byEmail = () => lookUp({ email: 'ada@old.example' })
const byMobile = () => lookUp({ mobile_number: mobile })

async function mergeTwo() {
  await create('ada', own)
  await create('newsletter-17', old)
  return merge('ada', 'newsletter-17')
}

it('leads look-ups, matches of single writes, batches and imports by the merged email and phone to the survivor', async () => {
  await mergeTwo()
  expect([await byEmail(), await byMobile()]).toEqual([['ada'], ['ada']])
  const upserted = await shop.ok('POST', '/v1/people/upsert', { match: ['email'], ...old, first_name: 'Ada' })
  // The survivor keeps its own addresses, as it keeps its name when it gets an alias.
  expect(upserted).toMatchObject({ external_id: 'ada', first_name: 'Ada', ...own })
  const batch = {
    match: ['mobile'],
    operations: [{ op: 'upsert', body: { mobile_number: mobile, last_name: 'Byron' } }],
  }
  await shop.ok('POST', '/v1/people/batch', batch)
  const lines = linesFrom([{ email: 'ADA@old.example', first_name: 'Augusta' }])
  const { counts } = await importLines(shop, '/v1/people/import?match=email', lines)
  expect(counts).toMatchObject({ created: 0, updated: 1 })
  const { items } = await shop.ok('POST', '/v1/people/list', {})
  expect(items).toMatchObject([{ external_id: 'ada', first_name: 'Augusta', last_name: 'Byron', ...own }])
})

it('finds the survivor by the merged email and phone in a search, whole or in part', async () => {
  await mergeTwo()
  await follow(service.db, [searchFollower()])
  const found = async (text: string) => namesOf(await shop.ok('POST', '/v1/people/search', { text }))
  for (const text of ['ada@old.example', mobile, 'old', '4567'])
    expect([text, await found(text)]).toEqual([text, ['ada']])
  await unmerge('ada', 'newsletter-17')
  await follow(service.db, [searchFollower()])
  for (const text of ['ada@old.example', mobile, 'old', '4567'])
    expect([text, await found(text)]).toEqual([text, ['newsletter-17']])
})

it('finds the survivor and a person with the merged email or phone as duplicates, and the survivor alone as none', async () => {
  await mergeTwo()
  const groups = async (body: object = {}) => (await shop.ok('POST', '/v1/people/duplicates', body)).items
  expect(await groups()).toEqual([])
  await create('eve', { email: 'ada@old.example' })
  await create('fay', { mobile_number: mobile })
  for (const body of [{}, { size: 1 }, { by: ['email'] }]) {
    const [first] = await groups(body)
    expect([namesOf({ items: first.people }), first.size, first.why]).toEqual([
      ['ada', 'eve'],
      2,
      [{ by: 'email', value: 'ada@old.example' }],
    ])
  }
  const [second] = await groups({ by: ['mobile'] })
  expect([namesOf({ items: second.people }), second.why]).toEqual([['ada', 'fay'], [{ by: 'mobile', value: mobile }]])
  const reply = await shop.send('POST', '/v1/people/upsert', { match: ['email'], email: 'ada@old.example' })
  expect([reply.status, reply.body.details?.length]).toEqual([409, 2])
})

it('tells of the addresses in a merge, its dry run, the unmerge and the dossier', async () => {
  await create('ada', own)
  await create('newsletter-17', old)
  const aliases = [
    { kind: 'external_id', value: 'newsletter-17' },
    { kind: 'email', value: 'ada@old.example' },
    { kind: 'mobile', value: mobile },
  ]
  expect((await merge('ada', 'newsletter-17', { dry_run: true })).changes.aliases).toEqual(aliases)
  expect(await byEmail()).toEqual(['newsletter-17'])
  expect((await merge('ada', 'newsletter-17')).changes.aliases).toEqual(aliases)
  const dossier = await shop.send('GET', '/v1/people/ada/dossier')
  const told = (dossier.body.data as { type: string }[]).filter(({ type }) => type === 'alias')
  expect(told).toEqual(aliases.map(alias => ({ type: 'alias', ...alias, created_at: expect.any(String), merge_id: 1 })))
  await create('boss')
  await shop.ok('PATCH', '/v1/people/boss', { email: 'boss@new.example' })
  expect((await merge('boss', 'ada')).changes.aliases).toEqual(
    expect.arrayContaining([...aliases, { kind: 'email', value: 'ada@new.example' }]),
  )
  expect([await byEmail(), await lookUp({ email: 'ada@new.example' })]).toEqual([['boss'], ['boss']])
  expect((await unmerge('boss', 'ada')).changes.aliases).toEqual(
    expect.arrayContaining([...aliases, { kind: 'email', value: 'ada@new.example' }]),
  )
  expect((await unmerge('ada', 'newsletter-17')).changes.aliases).toEqual(aliases)
  expect([await byEmail(), await byMobile()]).toEqual([['newsletter-17'], ['newsletter-17']])
})

it('has no alias for an address that the survivor takes or has, and keeps it for another merged person who has it', async () => {
  await create('ada')
  await create('bob', { email: old.email })
  await create('cleo', { email: 'ADA@old.example' })
  for (const other of ['bob', 'cleo'])
    expect((await merge('ada', other)).changes.aliases).toEqual([{ kind: 'external_id', value: other }])
  expect(await byEmail()).toEqual(['ada'])
  expect((await unmerge('ada', 'bob')).person.email).toBeNull()
  expect(await byEmail()).toEqual(['ada', 'bob'])
  await unmerge('ada', 'cleo')
  expect(await byEmail()).toEqual(['bob', 'cleo'])
})

it('does not lead an address again that the survivor took and overwrote, after another merge was undone', async () => {
  await create('ada')
  await create('bob', { email: old.email })
  await create('cleo', { email: 'cleo@example.org' })
  await merge('ada', 'bob')
  await shop.ok('PATCH', '/v1/people/ada', { email: own.email })
  expect(await byEmail()).toEqual([])
  await merge('ada', 'cleo', { keep: { email: 'other' } })
  await unmerge('ada', 'cleo')
  expect(await byEmail()).toEqual([])
})

it('lets a write of the same batch create a person by the merged email once the survivor is deleted', async () => {
  await mergeTwo()
  const { items } = await shop.ok('POST', '/v1/people/batch', {
    match: ['email'],
    operations: [
      { op: 'delete', external_id: 'ada' },
      { op: 'upsert', body: { external_id: 'new', email: 'ada@old.example' } },
    ],
  })
  expect(items.map(({ status }: { status: number }) => status)).toEqual([200, 201])
  expect(await byEmail()).toEqual(['new'])
})

it.each([true, false])(
  'takes the addresses with an erasure and refuses them after it, with the log: %s',
  async hasLog => {
    await mergeTwo()
    if (!hasLog) {
      const nowMs = () => Date.now() + 3 * 86_400_000
      await follow(service.db, [retentionFollower({ logRetentionDays: 1, nowMs, pausePerWork: 0 })], { nowMs })
    }
    await shop.ok('POST', '/v1/people/ada/erase', { reason: 'Request of the person' })
    expect([await byEmail(), await byMobile()]).toEqual([[], []])
    const left = 'select 1 from merges where organization_id = $1 and (email_key is not null or mobile_key is not null)'
    expect(await service.sql(left, [shop.id])).toEqual([])
    for (const body of [{ email: 'ada@old.example' }, { mobile_number: mobile }]) {
      const reply = await shop.send('POST', '/v1/people/upsert', {
        match: Object.keys(body).map(key => key.replace('_number', '')),
        ...body,
      })
      expect([reply.status, reply.body.reason]).toEqual([409, 'erased'])
    }
  },
)
