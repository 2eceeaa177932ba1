import { rotateKeys, signingKeyRow } from '../auth/keys/keys.ts'
import { linkKeyRow } from '../consent-links/consent-links.ts'
import { type Database, masterKeysOf } from '../db/db.ts'
import { sourceRow } from '../deliverability/sources.ts'
import { deleteSourceSql } from '../deliverability/sql.ts'
import { ledgerKeyRow, rotateLedgerKey } from '../ledger/keys.ts'
import { headerRow, type StoredSecrets, secretsRow, type WebhookKey, wrapSecrets } from '../webhooks/stored-secrets.ts'
import { newSecret } from '../webhooks/webhooks.ts'
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

/** A text as it is stored, and the name of the row that it is wrapped for. */
type StoredSecret = [stored: string, row: string]

/** The wrapped columns of a table. */
export type WrappedColumns<Row> = {
  /** The rows that have a secret which is not like the pattern. */
  find: (db: Database, pattern: string) => Promise<Row[]>
  secrets: (row: Row) => StoredSecret[]
  /** Stores the secrets, wrapped anew, in the same order, unless a write has changed the row since it was read. */
  store: (db: Database, row: Row, wrapped: string[]) => Promise<unknown>
  /** Replaces or deletes a row that does not open. */
  forget: (db: Database, row: Row) => Promise<unknown>
}

/** The stored text of a value of JSON, see {@link wrapJson}. */
const textOf = (stored: unknown) => (typeof stored === 'string' ? stored : JSON.stringify(stored))

type PrivateKey = { kid: string; private_jwk: unknown }

/** The keys of a table. If the key that signs tokens is replaced, its tokens stay valid, because the public half is not wrapped. */
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

/** The next link of an organization makes a new key. */
const link_keys: WrappedColumns<LinkKey> = {
  find: (db, pattern) => db.query<LinkKey>(findLinkKeysSql, [pattern]),
  secrets: ({ organization_id, id, secret }) => [[secret.toString('latin1'), linkKeyRow(organization_id, id)]],
  store: (db, { organization_id, id, secret }, [wrapped]) =>
    db.query(storeLinkKeySql, [organization_id, id, secret, Buffer.from(wrapped!, 'latin1')]),
  forget: (db, { organization_id, id, secret }) => db.query(deleteLinkKeySql, [organization_id, id, secret]),
}

type Webhook = WebhookKey & StoredSecrets

/** A receiver refuses the deliveries of a replaced secret, and kith repeats them, until the secret is rotated and the receiver has it. */
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

/** Without its secret, a source would accept events that its provider did not sign, so it is deleted. */
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

/** Everything that is wrapped, by table. The first two have a row in every database since its first start. */
export const wrappedColumns = {
  signing_keys: keysOf('signing_keys', signingKeyRow, rotateKeys),
  ledger_keys: keysOf('ledger_keys', ledgerKeyRow, rotateLedgerKey),
  link_keys,
  webhooks,
  deliverability_sources,
} as unknown as Record<string, WrappedColumns<unknown>>
