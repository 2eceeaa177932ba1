import { rotateKeys, signingKeyRow } from '../auth/keys/keys.ts'
import { linkKeyRow } from '../consent-links/consent-links.ts'
import { type Database, masterKeysOf } from '../db/db.ts'
import { keyIdOf, type MasterKeys, wrappedPrefix } from '../db/master-keys.ts'
import { sourceRow } from '../deliverability/sources.ts'
import { deleteSourceSql } from '../deliverability/sql.ts'
import { ledgerKeyRow, rotateLedgerKey } from '../ledger/keys.ts'
import type { Config } from '../process/config.ts'
import {
  headerRow,
  newSecret,
  type StoredSecrets,
  secretsRow,
  type WebhookKey,
  wrapSecrets,
} from '../webhooks/stored-secrets.ts'
import { keyFilePath, makeKeyFile } from './key-file.ts'
import {
  deleteLinkKeySql,
  findLinkKeysSql,
  findSourcesSql,
  findWebhooksSql,
  privateKeys,
  storeLinkKeySql,
  storeSourceSql,
  storeWebhookSql,
} from './sql.ts'

/** A stored text, and the name of the row that it is wrapped for. */
type StoredSecret = [stored: string, row: string]

/** The wrapped columns of a table. */
type WrappedColumns<Row> = {
  /** Finds the rows with a secret that does not match the pattern. */
  find: (db: Database, pattern: string) => Promise<Row[]>
  secrets: (row: Row) => StoredSecret[]
  /** Stores the rewrapped secrets, in the same order, unless a write has changed the row since it was read. */
  store: (db: Database, row: Row, wrapped: string[]) => Promise<unknown>
  /** Replaces or deletes a row that cannot be unwrapped. */
  forget: (db: Database, row: Row) => Promise<unknown>
}

/** The stored text of a JSON value, see {@link wrapJson}. */
const textOf = (stored: unknown) => (typeof stored === 'string' ? stored : JSON.stringify(stored))

type PrivateKey = { kid: string; private_jwk: unknown }

/**
 * The private keys of a table. If the key that signs tokens is replaced, its tokens stay valid, because the public half
 * is not wrapped.
 */
const keysOf = (
  table: keyof typeof privateKeys,
  rowOf: (kid: string) => string,
  rotate: (db: Database) => Promise<string>,
): WrappedColumns<PrivateKey> => ({
  find: (db, pattern) => db.query<PrivateKey>(privateKeys[table].find, [pattern]),
  secrets: ({ kid, private_jwk }) => [[textOf(private_jwk), rowOf(kid)]],
  store: (db, { kid, private_jwk }, [wrapped]) =>
    db.query(privateKeys[table].store, [kid, JSON.stringify(private_jwk), JSON.stringify(wrapped)]),
  forget: rotate,
})

type LinkKey = { organization_id: number; id: number; secret: Buffer }

/** The next link of an organization creates a new key. */
const link_keys: WrappedColumns<LinkKey> = {
  find: (db, pattern) => db.query<LinkKey>(findLinkKeysSql, [pattern]),
  secrets: ({ organization_id, id, secret }) => [[secret.toString('latin1'), linkKeyRow(organization_id, id)]],
  store: (db, { organization_id, id, secret }, [wrapped]) =>
    db.query(storeLinkKeySql, [organization_id, id, secret, Buffer.from(wrapped!, 'latin1')]),
  forget: (db, { organization_id, id, secret }) => db.query(deleteLinkKeySql, [organization_id, id, secret]),
}

type Webhook = WebhookKey & StoredSecrets

/**
 * If a secret is replaced, the receiver refuses the deliveries and kith repeats them, until the secret is rotated and
 * the receiver has it.
 */
const webhooks: WrappedColumns<Webhook> = {
  find: (db, pattern) => db.query<Webhook>(findWebhooksSql, [pattern]),
  secrets: row => [
    [textOf(row.secrets), secretsRow(row)],
    ...Object.entries(row.request_headers).map(([name, value]): StoredSecret => [value, headerRow(row, name)]),
  ],
  store: (db, row, [secrets, ...values]) => {
    const headers = Object.keys(row.request_headers).map((name, index) => [name, values[index]])
    return db.query(storeWebhookSql, [
      ...asRead(row),
      JSON.stringify(secrets),
      JSON.stringify(Object.fromEntries(headers)),
    ])
  },
  forget: (db, row) =>
    db.query(storeWebhookSql, [...asRead(row), wrapSecrets(masterKeysOf(db), row, [newSecret()]), '{}']),
}

const asRead = ({ organization_id, id, secrets, request_headers }: Webhook) =>
  [organization_id, id, JSON.stringify(secrets), JSON.stringify(request_headers)] as const

type Source = { organization_id: number; key: string; secret_path: string; secret: string | null }

/** Without its secret, a source would accept unsigned events, so it is deleted. */
const deliverability_sources: WrappedColumns<Source> = {
  find: (db, pattern) => db.query<Source>(findSourcesSql, [pattern]),
  secrets: ({ organization_id: id, key, secret_path, secret }) => [
    [secret_path, sourceRow(id, key, 'secret_path')],
    ...(secret === null ? [] : [[secret, sourceRow(id, key, 'secret')] as StoredSecret]),
  ],
  store: (db, { organization_id, key, secret_path, secret }, [newPath, newSecret = null]) =>
    db.query(storeSourceSql, [organization_id, key, secret_path, secret, newPath, newSecret]),
  forget: (db, { organization_id, key }) => db.query(deleteSourceSql, [organization_id, key]),
}

/** All wrapped columns, by table. The first two tables have a row in every database since its first start. */
const wrappedColumns = {
  signing_keys: keysOf('signing_keys', signingKeyRow, rotateKeys),
  ledger_keys: keysOf('ledger_keys', ledgerKeyRow, rotateLedgerKey),
  link_keys,
  webhooks,
  deliverability_sources,
} as unknown as Record<string, WrappedColumns<unknown>>

/**
 * Creates the master key of a data folder that has none. Throws an Error if a master key that the process does not have
 * wraps the keys of the database, because a new key would replace it. `forgetsLost` creates one anyway.
 */
export async function ensureMasterKey(db: Database, config: Config, { forgetsLost = false } = {}): Promise<void> {
  const path = keyFilePath(config)
  const lost = forgetsLost ? undefined : await findLostKey(db)
  if (lost !== undefined)
    throw new Error(
      `The keys of this database are wrapped by the master key ${lost}, which ${path ?? 'this process'} does not have. ` +
        `${path === undefined ? 'Name its file with KITH_MASTER_KEY_FILE' : `Put it into ${path}`}. If it is lost, run ` +
        'kith keys forget: docs/keys.md says what is lost with it.',
    )
  if (path !== undefined && masterKeysOf(db).wrappingId() === undefined) await makeKeyFile(path)
}

/**
 * Returns the id of the master key that wraps the keys of tokens and ledgers, if the process does not have it. Throws
 * an Error if their bytes were changed.
 */
export async function findLostKey(db: Database): Promise<string | undefined> {
  const keys = masterKeysOf(db)
  for (const columns of [wrappedColumns.signing_keys!, wrappedColumns.ledger_keys!])
    for (const row of await columns.find(db, 'none')) {
      const stored = columns.secrets(row)[0]![0]
      if (!keys.hasKeyOf(stored)) return keyIdOf(stored)
      rewrap(columns, row, keys)
    }
  return undefined
}

const rewrap = ({ secrets }: WrappedColumns<unknown>, row: unknown, keys: MasterKeys) =>
  secrets(row).map(([stored, name]) => keys.wrap(keys.unwrap(stored, name), name))

/**
 * The number of rows by table that the first master key did not wrap: rewrapped ones, and those that are lost because
 * their master key is missing.
 */
export type Rewrapped = { wrapped: Record<string, number>; lost: Record<string, number> }

/** The number of concurrent updates. */
const maxConcurrent = 8

/**
 * Rewraps everything with the first master key. `forgetsLost` replaces or deletes rows that cannot be unwrapped. Writes
 * continue meanwhile. The next run finishes an interrupted one, and a run without work changes nothing. `dryRun` only
 * counts.
 */
export async function rewrapAll(db: Database, { forgetsLost = false, dryRun = false } = {}): Promise<Rewrapped> {
  const keys = masterKeysOf(db)
  const result: Rewrapped = { wrapped: {}, lost: {} }
  for (const [table, columns] of Object.entries(wrappedColumns)) {
    const rows = await columns.find(db, `${wrappedPrefix}${keys.wrappingId()}:%`)
    const visit = async (row: unknown) => {
      const wrapped = attempt(() => rewrap(columns, row, keys))
      const counts = wrapped ? result.wrapped : result.lost
      counts[table] = (counts[table] ?? 0) + 1
      if (dryRun) return
      if (wrapped) await columns.store(db, row, wrapped)
      else if (forgetsLost) await columns.forget(db, row)
    }
    for (let index = 0; index < rows.length; index += maxConcurrent)
      await Promise.all(rows.slice(index, index + maxConcurrent).map(visit))
  }
  return result
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

export const totalOf = (counts: Record<string, number>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)
