import { randomBytes } from 'node:crypto'
import { type MasterKeys, rowOf, unwrapJson, wrapJson } from '../db/master-keys.ts'
import type { HeadersPatch, RequestHeaders } from './request-headers.ts'

/** A secret signs until it expires. The newest one does not expire. */
export type Secret = { secret: string; expires_at: string | null }

const secretBytes = 32

/** Makes a secret that signs until it is rotated. */
export const newSecret = (): Secret => ({
  secret: `whsec_${randomBytes(secretBytes).toString('base64')}`,
  expires_at: null,
})

export const isActive = ({ expires_at }: Secret, nowMs: number): boolean =>
  expires_at === null || Date.parse(expires_at) > nowMs

/** The secrets that sign at a time. */
export const activeSecrets = (secrets: readonly Secret[], nowMs: number): string[] =>
  secrets.filter(each => isActive(each, nowMs)).map(({ secret }) => secret)

export type WebhookKey = { organization_id: number; id: number }

/**
 * The columns of a webhook with secrets, in the stored form: `secrets` is wrapped as a whole, and header values one by
 * one.
 */
export type StoredSecrets = { secrets: unknown; request_headers: RequestHeaders }

/** The row that the secrets and header values of a webhook are bound to when they are wrapped. */
export const secretsRow = ({ organization_id, id }: WebhookKey) => rowOf('webhooks', organization_id, id, 'secrets')
export const headerRow = ({ organization_id, id }: WebhookKey, name: string) =>
  rowOf('webhooks', organization_id, id, 'header', name)

/** The wrapped secrets as JSON. */
export const wrapSecrets = (keys: MasterKeys, key: WebhookKey, secrets: readonly Secret[]): string =>
  wrapJson(keys, secrets, secretsRow(key))

export const unwrapSecrets = (keys: MasterKeys, key: WebhookKey, stored: unknown): Secret[] =>
  unwrapJson(keys, stored, secretsRow(key)) as Secret[]

/** The wrapped headers as JSON. In a patch, null removes a header. */
export const wrapHeaders = (keys: MasterKeys, key: WebhookKey, headers: HeadersPatch): string =>
  JSON.stringify(mapValues(headers, (value, name) => value && keys.wrap(value, headerRow(key, name))))

export const unwrapHeaders = (keys: MasterKeys, key: WebhookKey, stored: RequestHeaders): RequestHeaders =>
  mapValues(stored, (value, name) => keys.unwrap(value, headerRow(key, name)))

/** Unwraps the secrets and headers that sending needs. */
export const unwrapSending = <Row extends StoredSecrets>(keys: MasterKeys, key: WebhookKey, row: Row) => ({
  ...row,
  secrets: unwrapSecrets(keys, key, row.secrets),
  request_headers: unwrapHeaders(keys, key, row.request_headers),
})

const mapValues = <Value extends string | null>(
  headers: Record<string, Value>,
  map: (value: Value, name: string) => Value,
): Record<string, Value> => Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, map(value, name)]))
