import { beforeAll, describe, expect, it } from 'vitest'
import { sealLedgers } from '../../test/support/ledger.ts'
import { type Organization, useService } from '../../test/support/service.ts'
import { renewLogId } from '../changes/log-id.ts'
import { contextOf } from '../db/context.ts'
import { type AuditResult, auditLedger, readKeptCheckpoint } from './audit.ts'

const service = useService()

let people = 0
/** Creates people with two answers each. The texts have every kind of character that JSON escapes. */
async function answer({ send }: Organization, count: number) {
  for (let left = count; left > 0; left -= 100) {
    const operations = Array.from({ length: Math.min(left, 100) }, () => ({
      op: 'create',
      body: {
        external_id: `p${++people}`,
        consents: ['email', 'sms'].map(channel => ({
          ...{ consent_type_id: 1, channel, state: people % 3 > 0 },
          // The times have microseconds, milliseconds, or are absent or unknown.
          ...(people % 5 > 0 && { collected_at: `2020-01-01T00:00:00.${people % 2 ? '120450' : '120'}Z` }),
          ...(people % 10 === 5 && { undated: true }),
        })),
      },
    }))
    expect((await send('POST', '/v1/people/batch', { operations })).status).toBe(200)
  }
}

async function makeLedger(count: number): Promise<Organization> {
  const shop = await service.organization()
  await answer(shop, count)
  await sealLedgers(service)
  return shop
}

const audit = ({ id }: Organization, options = {}) => auditLedger(contextOf(service.db, id), options)
/** Audits only the ledger itself. Tests that change answers do not change the values derived from them. */
async function auditSealed(shop: Organization, options = {}) {
  const { findings, ...result } = await audit(shop, options)
  return { ...result, findings: findings.filter(({ kind }) => kind !== 'in_force' && kind !== 'text') }
}
const messagesOf = ({ findings }: Pick<AuditResult, 'findings'>) => findings.map(({ message }) => message)
const checkpointOf = async ({ send }: Organization) =>
  (await send('GET', '/v1/ledger/checkpoint')).body.data.toString() as string

/** Flips one bit of a column of bytes. */
const flipped = (column: string, bit: number) => `set_bit(${column}, ${bit}, 1 - get_bit(${column}, ${bit}))`

/** `at` plus an interval. The plain sum depends on the session's time zone, so Citus rejects an update with it. */
const later = (interval: string) => `(at at time zone 'UTC' + interval '${interval}') at time zone 'UTC'`

describe('the audit of a ledger of 1,100 answers', { timeout: 120_000 }, () => {
  let shop: Organization
  let sealed: AuditResult
  beforeAll(async () => {
    shop = await makeLedger(550)
    sealed = await audit(shop)
  })

  it('finds nothing, and computes the root hash of the checkpoint', async () => {
    expect(sealed).toMatchObject({ organization: shop.key, size: 1_100, waiting: 0, findings: [], has_more: false })
    expect((await checkpointOf(shop)).split('\n')[2]).toBe(sealed.root_hash)
  })

  const where = (index: number) => `where organization_id = $1 and index = ${index}`
  const answerOf = (index: number) => `where organization_id = $1 and (person_id, version, consent_type_id, channel) = (
    select c.entity_id, c.version, e.consent_type_id, e.channel from ledger_entries e
    join changes c on c.organization_id = $1 and c.sequence = e.sequence ${where(index).replace('where organization_id', 'where e.organization_id').replace('index', 'e.index')})`
  const named = (index: number) => new RegExp(`^Entry ${index} \\(change \\d+, consent type 1, (email|sms)\\)`)

  /**
   * Changes of stored data: a name, the message that reports the change, the statement, and the statement that undoes
   * it.
   */
  const changes: [what: string, message: RegExp, change: string, undo?: string][] = [
    ...[0, 255, 256, 700, 1_099].flatMap((index): [string, RegExp, string][] => [
      [
        `salt of entry ${index}`,
        named(index),
        `update ledger_entries set salt = ${flipped('salt', index % 256)} ${where(index)}`,
      ],
      [
        `hash of entry ${index}`,
        named(index),
        `update ledger_entries set hash = ${flipped('hash', index % 256)} ${where(index)}`,
      ],
      [`state of entry ${index}`, named(index), `update consent_history set state = not state ${answerOf(index)}`],
    ]),
    [
      'time of an answer',
      named(9),
      `update consent_history set at = ${later('1 ms')} ${answerOf(9)}`,
      `update consent_history set at = ${later('-1 ms')} ${answerOf(9)}`,
    ],
    [
      'actor of an answer',
      named(9),
      `update consent_history set actor = 'x' || actor ${answerOf(9)}`,
      `update consent_history set actor = substr(actor, 2) ${answerOf(9)}`,
    ],
    [
      'collected_at of an answer',
      named(9),
      `update consent_history set collected_at = at ${answerOf(9)}`,
      `update consent_history set collected_at = null ${answerOf(9)}`,
    ],
    [
      'evidence of an answer',
      named(9),
      `update consent_history set evidence = '{"method":"paper"}' ${answerOf(9)}`,
      `update consent_history set evidence = null ${answerOf(9)}`,
    ],
    ['superseded', named(9), `update consent_history set superseded = not superseded ${answerOf(9)}`],
    ['undated', named(9), `update consent_history set undated = not undated ${answerOf(9)}`],
    ['pending', named(9), `update consent_history set pending = not pending ${answerOf(9)}`],
    [
      'full tile',
      /^Tile 0\/2 was changed\.$/,
      `update ledger_tiles set data = ${flipped('data', 4_000)} ${where(2)} and level = 0`,
    ],
    [
      'partial tile of leaves',
      /^Tile 0\/4 was changed\.$/,
      `update ledgers set edge = ${flipped('edge', 3)} where organization_id = $1`,
    ],
    [
      'partial tile above',
      /^Tile 1\/0 was changed\.$/,
      `update ledgers set edge = ${flipped('edge', (76 * 32 + 32) * 8 + 5)} where organization_id = $1`,
    ],
    [
      'size',
      /1100|1101|has 1101/,
      'update ledgers set size = size + 1 where organization_id = $1',
      'update ledgers set size = size - 1 where organization_id = $1',
    ],
    [
      'sequence of an entry',
      /^Entry 9 \(change|^An answer of change/,
      `update ledger_entries set sequence = sequence + 1000000 ${where(9)}`,
      `update ledger_entries set sequence = sequence - 1000000 ${where(9)}`,
    ],
    [
      'index of an entry',
      /^Entry 9 is missing\.$|^1 stored entries are not/,
      `update ledger_entries set index = 5000 ${where(9)}`,
      `update ledger_entries set index = 9 ${where(5_000)}`,
    ],
    [
      'version of a change',
      /^Entry \d+ .*its answer is missing\.$/,
      'update changes set version = version + 5 where organization_id = $1 and sequence = 20',
      'update changes set version = version - 5 where organization_id = $1 and sequence = 20',
    ],
  ]

  it.each(changes)('names a changed %s', async (_, message, change, undo = change) => {
    await service.sql(change, [shop.id])
    const { findings } = await audit(shop)
    await service.sql(undo, [shop.id])
    expect(findings[0]?.message).toMatch(message)
    expect(findings.length).toBeLessThan(6)
    expect(await audit(shop)).toEqual(sealed)
  })

  it('names one entry if one bit of it was changed', async () => {
    const change = `update ledger_entries set hash = ${flipped('hash', 77)} ${where(300)}`
    await service.sql(change, [shop.id])
    expect(messagesOf(await audit(shop))).toEqual([
      expect.stringMatching(/^Entry 300 \(change \d+, consent type 1, email\): its stored hash was changed\.$/),
    ])
    await service.sql(change, [shop.id])
  })

  it.each([0, 10, 60, 90, 120, 200, 260])('finds character %i of the stored checkpoint changed', async at => {
    const set = 'update ledgers set checkpoint = $2 where organization_id = $1'
    const note = await checkpointOf(shop)
    const index = at % note.length
    const other = note[index] === 'A' ? 'B' : 'A'
    await service.sql(set, [shop.id, note.slice(0, index) + other + note.slice(index + 1)])
    const { findings } = await audit(shop)
    await service.sql(set, [shop.id, note])
    expect(findings).toHaveLength(1)
    expect(findings[0]).toMatchObject({ kind: 'checkpoint' })
  })

  it('finds a key that was changed', async () => {
    const swap = `update ledger_keys set public_jwk = jsonb_set(public_jwk, '{x}', ('"' || reverse(public_jwk->>'x') || '"')::jsonb)`
    await service.sql(swap)
    const { findings } = await audit(shop)
    await service.sql(swap)
    expect(findings).toMatchObject([
      { kind: 'checkpoint', message: expect.stringContaining('is not signed by the key') },
    ])
  })

  it('finds answers that were added without a change, and those that were removed', async () => {
    const [row] = await service.sql<{ person_id: string }>(
      `insert into consent_history select (jsonb_populate_record(h, '{"version": 99}')).* from consent_history h ${answerOf(9).replaceAll('e.', 'e.').replace('where organization_id', 'where h.organization_id')} returning person_id`,
      [shop.id],
    )
    expect(messagesOf(await audit(shop))).toEqual(['The consent history has answers that belong to no change: 1.'])
    await service.sql('delete from consent_history where organization_id = $1 and person_id = $2 and version = 99', [
      shop.id,
      row!.person_id,
    ])
    expect(await audit(shop)).toEqual(sealed)
  })

  it('finds tiles that were removed', async () => {
    const [tile] = await service.sql<{ data: Buffer }>(
      `delete from ledger_tiles ${where(1)} and level = 0 returning data`,
      [shop.id],
    )
    expect(messagesOf(await audit(shop))).toEqual([
      '3 full tiles are stored, but 1100 entries have 4.',
      'Tile 0/1 is missing.',
    ])
    await service.sql('insert into ledger_tiles (organization_id, level, index, data) values ($1, 0, 1, $2)', [
      shop.id,
      tile!.data,
    ])
    expect(await audit(shop)).toEqual(sealed)
  })

  it('lists a hundred findings at most', async () => {
    const change = `update ledger_entries set salt = ${flipped('salt', 1)} where organization_id = $1`
    await service.sql(change, [shop.id])
    const { findings, has_more } = await audit(shop)
    await service.sql(change, [shop.id])
    expect([findings.length, has_more]).toEqual([100, true])
  })
})

it('finds a text that was changed, and an answer in force that the history does not have', async () => {
  const shop = await service.organization()
  await shop.send('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text: 'Yes, please.' })
  const consents = [{ consent_type_id: 1, channel: 'email', state: false, text_version: 1 }]
  const body = { external_id: 'ada', email: 'ada@example.com', consents }
  const created = await shop.send('POST', '/v1/people', body)
  await sealLedgers(service)
  expect(await audit(shop)).toMatchObject({ size: 1, findings: [] })
  const inForce = `The answer in force of person ${created.body.data.id} (consent type 1, email) is not that of the history.`
  for (const [change, message] of [
    [
      `update consent_texts set text = 'Yes, Please.' where organization_id = $1`,
      'Text 1 of consent type 1 was changed.',
    ],
    [`update entities set answers = jsonb_set(answers, '{1:email,state}', 'true') where organization_id = $1`, inForce],
    [`update entities set answers = '{}' where organization_id = $1`, inForce],
    [
      'update address_answers set state = true where organization_id = $1',
      `The answer for an address of change ${created.headers.get('x-kith-sequence')} (consent type 1, email) is not that of the history.`,
    ],
  ] as const) {
    const before = await service.sql('select answers from entities where organization_id = $1', [shop.id])
    await service.sql(change, [shop.id])
    expect(messagesOf(await audit(shop))).toEqual([message])
    await service.sql('update entities set answers = $2 where organization_id = $1', [shop.id, before[0]!.answers])
    await service.sql('update address_answers set state = false where organization_id = $1', [shop.id])
    await service.sql(`update consent_texts set text = 'Yes, please.' where organization_id = $1`, [shop.id])
  }
})

it('finds answers that were never sealed, and counts those that wait', async () => {
  const shop = await makeLedger(2)
  await answer(shop, 3)
  expect(await audit(shop)).toMatchObject({ size: 4, waiting: 6, findings: [] })
  const [{ sequence }] = (await service.sql<{ sequence: number }>(
    `update followers set sequence = sequence + 1 where organization_id = $1 and name = 'ledger' returning sequence`,
    [shop.id],
  )) as [{ sequence: number }]
  expect(await audit(shop)).toMatchObject({
    waiting: 4,
    findings: [{ kind: 'answer', message: `An answer of change ${sequence} is not in the ledger.` }],
  })
})

it('accepts an erased answer without its salt, and no answer that lost only its salt', async () => {
  const shop = await makeLedger(3)
  await service.sql('update ledger_entries set salt = null where organization_id = $1 and index = 2', [shop.id])
  expect(messagesOf(await auditSealed(shop))).toEqual([
    expect.stringMatching(/^Entry 2 .*: its salt is missing, although its answer is stored\.$/),
  ])
  await service.sql(
    `delete from consent_history where organization_id = $1 and (person_id, version, consent_type_id, channel) = (
       select c.entity_id, c.version, e.consent_type_id, e.channel from ledger_entries e
       join changes c on c.organization_id = $1 and c.sequence = e.sequence where e.organization_id = $1 and e.index = 2)`,
    [shop.id],
  )
  expect(await auditSealed(shop)).toMatchObject({ findings: [], size: 6 })
  await service.sql(`update ledger_entries set hash = ${flipped('hash', 9)} where organization_id = $1 and index = 2`, [
    shop.id,
  ])
  expect(messagesOf(await auditSealed(shop))).toEqual([
    expect.stringMatching(/^Entry 2 .*: its stored hash was changed\.$/),
  ])
})

it('hashes every kind of text as the entries were sealed', async () => {
  const shop = await makeLedger(0)
  await answer(shop, 20)
  const texts = ['"\\/\b\f\n\r\t', '\u0001\u001f\u007f\u0080', 'é\u2028\u2029\ufeff', '😀 </script>', "'; drop--", ' ']
  for (const [version, text] of texts.entries())
    await service.sql(
      `update consent_history set actor = $2, request_id = $2, superseded = $3, pending = not $3,
         previous_state = case when $3 then state end, collected_at = ${later('-1 day -7 ms')},
         evidence = jsonb_build_object('method', 'other', 'source', $2::text, 'ip', '2001:db8::1', 'user_agent', $2::text,
           'text_version', $4::integer, 'reference', $2::text)
       where organization_id = $1 and (person_id) in (
         select entity_id from changes where organization_id = $1 and stack_id = 0 order by sequence offset $4 limit 1)`,
      [shop.id, text, version % 2 === 0, version + 1],
    )
  await service.sql(
    `insert into consent_texts (organization_id, consent_type_id, version, language, text, sha256, created_at)
     select $1, 1, n, 'en', 'text', sha256(n::text::bytea), now() from generate_series(1, 4) n`,
    [shop.id],
  )
  await sealLedgers(service)
  expect(await auditSealed(shop)).toMatchObject({ size: 40, findings: [] })
})

describe('a checkpoint that was kept elsewhere', () => {
  const since = async (shop: Organization, note: string) => readKeptCheckpoint(service.db, shop.key, note)

  it('proves that the ledger has only grown', async () => {
    const shop = await makeLedger(0)
    const kept = [await checkpointOf(shop)]
    for (const count of [1, 100, 27, 1]) {
      await answer(shop, count)
      await sealLedgers(service)
      kept.push(await checkpointOf(shop))
    }
    for (const note of kept)
      expect(await audit(shop, { since: await since(shop, note) })).toMatchObject({ findings: [] })
  })

  it('proves that the ledger was rewritten, even if everything stored agrees', async () => {
    const shop = await makeLedger(3)
    const kept = await since(shop, await checkpointOf(shop))
    await service.sql('delete from ledger_entries where organization_id = $1', [shop.id])
    await service.sql('delete from ledgers where organization_id = $1', [shop.id])
    await service.sql(`update followers set sequence = 0 where organization_id = $1 and name = 'ledger'`, [shop.id])
    await service.sql('update consent_history set state = not state where organization_id = $1', [shop.id])
    await sealLedgers(service)
    await answer(shop, 2)
    await sealLedgers(service)
    expect(await auditSealed(shop)).toMatchObject({ findings: [], size: 10 })
    expect(messagesOf(await auditSealed(shop, { since: kept }))).toEqual([
      'The ledger does not begin with the 6 entries of the kept checkpoint: its first entries were rewritten.',
    ])
  })

  it('proves that entries were removed', async () => {
    const shop = await makeLedger(3)
    const kept = await since(shop, await checkpointOf(shop))
    expect(messagesOf(await audit(await makeLedger(1), { since: kept }))).toEqual([
      'The kept checkpoint has 6 entries, but the ledger has only 2: entries were removed.',
    ])
  })

  it('stays valid after the log got a new id', async () => {
    const shop = await makeLedger(2)
    const note = await checkpointOf(shop)
    await renewLogId(contextOf(service.db, shop.id))
    await answer(shop, 1)
    await sealLedgers(service)
    expect(await audit(shop, { since: await since(shop, note) })).toMatchObject({ findings: [], size: 6 })
  })

  it('is refused if it is of another organization, or not signed by this service', async () => {
    const [shop, other] = [await makeLedger(1), await makeLedger(1)]
    const note = await checkpointOf(other)
    await expect(since(shop, note)).rejects.toThrow('The checkpoint belongs to another ledger, kith/')
    const changed = note.slice(0, -20) + (note.at(-20) === 'A' ? 'B' : 'A') + note.slice(-19)
    await expect(since(other, changed)).rejects.toThrow('is wrong')
    await expect(since(other, note.replaceAll(other.key, shop.key))).rejects.toThrow('is not signed by the key')
    await expect(since(other, 'no checkpoint')).rejects.toThrow('The note has no blank line')
  })
})
