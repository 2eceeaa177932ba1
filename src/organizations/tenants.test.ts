import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { useOwnService } from '../../test/support/service.ts'
import { createShop, type Shop } from '../../test/support/shop.ts'
import type { Statement } from '../db/db.ts'
import { copyAllSql } from '../entities/read/read-sql.ts'
import { appendConsentHistory } from '../entities/write/store/store-sql.ts'
import { deleteRowsSql, organizationTables } from './deletion-sql.ts'

const service = useOwnService()
const data = async (shop: Shop, path: string) => (await shop.send('GET', path)).body.data
describe('two organizations', () => {
  it('have separate definitions and consent types, each numbered from 1', async () => {
    const [left, right] = [await createShop(service), await createShop(service)]
    const createDefinitions = async ({ send }: Shop, type: string) => [
      (await send('POST', '/v1/schema/stacks', { key: 'orders', kind: type === 'text' ? 'item' : 'event' })).status,
      (await send('POST', '/v1/schema/attributes', { key: 'a', owner: 'people', type })).body.data.id,
      (
        await send('POST', '/v1/schema/consent-types', {
          key: 'news',
          channels: [{ channel: 'sms', is_default: true }],
        })
      ).body.data.id,
    ]
    expect(await createDefinitions(left, 'text')).toEqual([201, 1, 2])
    expect(await data(right, '/v1/schema')).toMatchObject({
      stacks: [],
      attributes: [],
      consent_types: [{ id: 1, channels: [{ is_default: true }, { is_default: true }] }],
    })
    expect(await createDefinitions(right, 'number')).toEqual([201, 1, 2])
    await right.send('PATCH', '/v1/schema/attributes/1', { state: 'archived' })
    await right.send('PATCH', '/v1/schema/consent-types/2', { state: 'archived' })
    const body = { attribute_values: { a: 'x' }, consents: [{ consent_type_id: 2, channel: 'sms', state: true }] }
    expect((await left.send('POST', '/v1/people', body)).status).toBe(201)
    expect((await right.send('POST', '/v1/people', body)).status).toBe(400)
    expect((await left.send('POST', '/v1/people', { attribute_values: { a: 7 } })).status).toBe(400)
    expect((await data(left, '/v1/schema/stacks/orders')).kind).toBe('item')
  })

  it('number their changes separately, from 1', async () => {
    const [left, right] = [await createShop(service), await createShop(service)]
    await Promise.all(Array.from({ length: 30 }, (_, n) => (n % 3 ? left : right).send('POST', '/v1/people', {})))
    const numbers = async ({ id }: Shop) =>
      (
        await service.sql<{ sequence: number }>('select sequence from changes where organization_id = $1 order by 1', [
          id,
        ])
      ).map(row => row.sequence)
    expect(await numbers(left)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
    expect(await numbers(right)).toEqual(Array.from({ length: 10 }, (_, n) => n + 1))
  })
})

const sourceDir = fileURLToPath(new URL('..', import.meta.url))
const files = async () =>
  (await readdir(sourceDir, { recursive: true })).filter(file => file.endsWith('.ts') && !file.endsWith('.test.ts'))

const isStatement = (value: unknown): value is Statement =>
  typeof value === 'object' && value !== null && 'name' in value && 'text' in value

async function statements(): Promise<Statement[]> {
  const modules = (await files())
    .filter(file => /sql\.ts$/.test(file))
    .map(file => import(pathToFileURL(join(sourceDir, file)).href))
  const values = (await Promise.all(modules)).flatMap(module => Object.values(module))
  return [...values, ...Object.values(deleteRowsSql)].filter(isStatement)
}

/** The tables that belong to no organization. The keys of `rate_limits` are hashes of their owners. */
const sharedTables = ['organizations', 'signing_keys', 'ledger_keys', 'rate_limits', 'backups']

/**
 * The statements that read several organizations. Background tasks and metrics use them. They return only ids, versions
 * and counts, or delete expired rows. `kith doctor` uses some.
 */
const crossTenantStatements = [
  'read_versions',
  'digest_versions',
  'list_organizations_with_expired_keys',
  'find_news',
  'find_news_of',
  'find_unsealed',
  'find_retention',
  'find_access_work',
  'find_outdated_sql_views',
  'find_clients',
  'find_tokens',
  'find_live_sessions',
  // A server wraps the secrets of all organizations with its master key.
  'find_wrapped_link_keys',
  'find_wrapped_sources',
  'find_wrapped_webhooks',
  'mark_tokens_used',
  'read_heads',
  'read_sequences',
  'read_follower_lag',
  'list_organizations_with_webhooks',
  'read_webhook_states',
  'list_failing_webhooks',
  'list_failing_followers',
  'read_index_sample',
  'list_organizations_with_unfinished_erasures',
  'list_unfinished_merges',
  'count_ledger_entries',
  'delete_expired_codes',
  'delete_expired_sessions',
  'delete_expired_tokens',
]

describe('SQL statements', () => {
  it('bind every table of an organization to $1, the organization id', async () => {
    const owned = (
      await service.sql<{ name: string }>(
        `select table_name as name from information_schema.columns where table_schema = 'public' and column_name = 'organization_id'`,
      )
    ).map(row => row.name)
    const known = await service.sql<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = 'public' and table_name not like '%migration%'`,
    )
    expect(known.map(row => row.name).sort()).toEqual([...owned, ...sharedTables].sort())
    expect([...organizationTables].sort()).toEqual(owned.sort())
    const found = await statements()
    expect(found.length).toBeGreaterThan(40)
    const unbound = found
      .filter(({ name }) => !crossTenantStatements.includes(name))
      .flatMap(({ name, text }) =>
        mentions(text, owned)
          .filter(mention => !isBound(text, mention))
          .map(mention => `${name}: ${mention.verb} ${mention.table}`),
      )
    expect(unbound).toEqual([])
  })

  it('that copy out carry the organization as a checked number', () => {
    const id = '00000000-0000-0000-0000-000000000000'
    expect(copyAllSql(7, 0, id).text).toContain('where e.organization_id = 7 and e.stack_id = 0')
    for (const values of [
      ['7 or true', 0, id],
      [7, '0', id],
      [7, 0, "' or true"],
    ] as [number, number, string][])
      expect(() => copyAllSql(...values)).toThrow('the values of a COPY')
  })

  it('only append to consent_history, except an erasure and the deletion of an organization, and no other file changes it', async () => {
    const erasing = ['delete_answers', 'erase_salts', 'delete_rows_of_consent_history']
    const naming = (await statements()).filter(
      ({ name, text }) => text.includes('consent_history') && !erasing.includes(name),
    )
    expect(appendConsentHistory.table).toBe('consent_history')
    for (const { text } of naming)
      expect(
        text.replace(/^insert into consent_history|\b(from|join) consent_history\b/g, '').replace(/'\w*'/g, ''),
      ).not.toMatch(/\b(update|delete|truncate|merge|conflict|consent_history)\b/)
    const others = (await files()).filter(file => !/sql\.ts$/.test(file))
    for (const file of others)
      expect(await readFile(join(sourceDir, file), 'utf8'), file).not.toMatch(
        /(update|delete from|truncate|merge into|table)\s+consent_history/,
      )
  })
})

type Mention = { verb: string; table: string; alias: string | undefined }

function mentions(text: string, tables: string[]): Mention[] {
  const pattern = new RegExp(
    `\\b(from|join|update|using|into|truncate|table)\\s+(${tables.join('|')})\\b(?:\\s+(?:as\\s+)?(?!set\\b|where\\b|using\\b|on\\b|order\\b|limit\\b|join\\b|left\\b)([a-z]+)\\b)?`,
    'g',
  )
  return [...text.matchAll(pattern)].map(([, verb, table, alias]) => ({ verb: verb!, table: table!, alias }))
}

function isBound(text: string, { verb, table, alias }: Mention): boolean {
  // An INSERT takes the organization from a table that it reads, in which it is bound.
  const source = '(?:values \\(|(?:with [^]+)?select (?:distinct )?)(?:\\$1|\\w+\\.organization_id)\\b'
  if (verb === 'into') return new RegExp(`into ${table}\\s*\\(organization_id[^)]*\\)\\s*${source}`).test(text)
  return new RegExp(alias ? `\\b${alias}\\.organization_id = \\$1` : '(?<![.\\w])organization_id = \\$1').test(text)
}
