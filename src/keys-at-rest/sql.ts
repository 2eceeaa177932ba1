import { statement } from '../db/db.ts'

// Each statement that finds secrets takes $1, a pattern of the beginning of current values, and returns the rows with
// other values. Each statement that stores secrets compares the secrets that were read, so that it undoes no concurrent
// write.

/** A JSON column is a string if it is wrapped. */
const differs = (column: string) => `${column} #>> '{}' not like $1`

/** The statements of a table of signing keys. To store, $1: kid, $2: the value that was read, $3: the new value. */
const privateKeysOf = (table: 'signing_keys' | 'ledger_keys') => ({
  find: statement(
    `find_wrapped_${table}`,
    `select kid, private_jwk from ${table} where private_jwk is not null and ${differs('private_jwk')}`,
  ),
  store: statement(
    `store_wrapped_${table}`,
    `update ${table} set private_jwk = $3::jsonb where kid = $1 and private_jwk = $2::jsonb returning kid`,
  ),
})
export const privateKeys = { signing_keys: privateKeysOf('signing_keys'), ledger_keys: privateKeysOf('ledger_keys') }

const isLinkKeyToWrap = `k.secret not like convert_to($1, 'UTF8')`
export const findLinkKeysSql = statement(
  'find_wrapped_link_keys',
  `select k.organization_id, k.id, k.secret from link_keys k where ${isLinkKeyToWrap}`,
)

/** $2: id, $3: the value that was read, $4: the new value. */
export const storeLinkKeySql = statement(
  'store_wrapped_link_key',
  'update link_keys k set secret = $4 where k.organization_id = $1 and k.id = $2 and k.secret = $3 returning k.id',
)

/** $2: id, $3: the value that was read. The next link of the organization creates a new key. */
export const deleteLinkKeySql = statement(
  'delete_lost_link_key',
  'delete from link_keys k where k.organization_id = $1 and k.id = $2 and k.secret = $3 returning k.id',
)

const isWebhookToWrap = `w.deleted_at is null and (${differs('w.secrets')}
     or exists (select from jsonb_each_text(w.headers) h where h.value not like $1))`
export const findWebhooksSql = statement(
  'find_wrapped_webhooks',
  `select w.organization_id, w.id, w.secrets, w.headers as request_headers from webhooks w where ${isWebhookToWrap}`,
)

/** $2: id, $3 and $4: the secrets and headers that were read, $5 and $6: the new ones. */
export const storeWebhookSql = statement(
  'store_wrapped_webhook',
  `update webhooks w set secrets = $5::jsonb, headers = $6::jsonb
   where w.organization_id = $1 and w.id = $2 and w.secrets = $3::jsonb and w.headers = $4::jsonb returning w.id`,
)

const isSourceToWrap = '(s.secret_path not like $1 or s.secret not like $1)'
export const findSourcesSql = statement(
  'find_wrapped_sources',
  `select s.organization_id, s.key, s.secret_path, s.secret from deliverability_sources s where ${isSourceToWrap}`,
)

/** $2: key, $3 and $4: the path and secret that were read, $5 and $6: the new ones. */
export const storeSourceSql = statement(
  'store_wrapped_source',
  `update deliverability_sources s set secret_path = $5, secret = $6
   where s.organization_id = $1 and s.key = $2 and s.secret_path = $3 and s.secret is not distinct from $4 returning s.key`,
)
