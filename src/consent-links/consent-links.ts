import { createSecretKey, randomBytes } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import type { Context } from '../db/context.ts'
import { masterKeysOf } from '../db/db.ts'
import { rowOf, unwrapBytes, wrapBytes } from '../db/master-keys.ts'
import type { Config } from '../process/config.ts'
import type { Signal } from '../process/signal.ts'
import { refuse } from '../values/errors.ts'
import { insertFirstLinkKeySql, readLinkKeySql, readNewestLinkKeySql } from './sql.ts'
import { type LinkKind, type NewLink, type OpenLinkKey, signLink } from './token.ts'

/** The paths of the pages. A link is one of them with a token. They are short to fit into a text message. */
export const paths: Record<LinkKind, string> = { preferences: '/p', unsubscribe: '/u', confirm: '/c' }

const daySeconds = 86_400
/** The default lifetimes of links, in seconds. */
const defaultLifetimes: Record<LinkKind, number> = {
  preferences: 365 * daySeconds,
  unsubscribe: 365 * daySeconds,
  confirm: 7 * daySeconds,
}

export type LinkSettings = Pick<Config, 'publicUrl' | 'behindProxy'>

export const unknownBase =
  'The service does not know the address at which people reach it. Set KITH_PUBLIC_URL, and start it again.'

/**
 * The address that links begin with. kith ignores the header Host, with which a client could make links to elsewhere.
 * Without KITH_PUBLIC_URL, the address is that of the service itself, `localUrl`, if it listens on this machine only.
 * Undefined if kith does not know its address.
 */
export function findBaseUrl(localUrl: string, { publicUrl, behindProxy }: LinkSettings): string | undefined {
  if (publicUrl !== undefined) return publicUrl
  const host = new URL(localUrl).hostname.replace(/^\[(.*)\]$/, '$1')
  return behindProxy === 0 && ipaddr.process(host).range() === 'loopback' ? localUrl : undefined
}

/** As {@link findBaseUrl}. Throws a Fault of 500 if kith does not know its address. */
export const baseUrlOf = (localUrl: string, settings: LinkSettings): string =>
  findBaseUrl(localUrl, settings) ?? refuse('operation_failed', unknownBase)

/** An organization whose links are made or opened. */
export type LinkContext = Pick<Context, 'db' | 'organization_id'>

/** Prepares links of the organization that begin with `base`. The returned function prints the URL of a link. */
export async function prepareLinks(context: LinkContext, base: string, signal?: Signal) {
  const { organization_id } = context
  const { id, secret } = await readOrCreateKey(context, signal)
  // Signing a link takes 7 µs with a key object, and 35 µs with the bytes of the key.
  const key = { id, secret: createSecretKey(secret) }
  return (link: Omit<NewLink, 'organization_id'>) =>
    `${base}${paths[link.kind]}/${signLink({ organization_id, ...link }, key)}`
}

/** The key that signs new links. It is created for the first link of an organization. */
async function readOrCreateKey({ db, organization_id }: LinkContext, signal?: Signal): Promise<OpenLinkKey> {
  const read = async () => {
    const [key] = await db.query<OpenLinkKey>(readNewestLinkKeySql, [organization_id], signal)
    return key && open({ db, organization_id }, key)
  }
  const key = await read()
  if (key) return key
  const secret = wrapBytes(masterKeysOf(db), randomBytes(32), linkKeyRow(organization_id, 1))
  await db.query(insertFirstLinkKeySql, [organization_id, secret], signal)
  return (await read())!
}

/** The key of a link by its id. Undefined if the organization has none of this id, or is deleted. */
export async function readLinkKey(context: LinkContext, id: number, signal?: Signal): Promise<OpenLinkKey | undefined> {
  const [key] = await context.db.query<OpenLinkKey>(readLinkKeySql, [context.organization_id, id], signal)
  return key && open(context, key)
}

/** The row that a key is wrapped for. */
export const linkKeyRow = (organization_id: number, id: number): string => rowOf('link_keys', organization_id, id)

const open = ({ db, organization_id }: LinkContext, { id, secret }: OpenLinkKey): OpenLinkKey => ({
  id,
  secret: unwrapBytes(masterKeysOf(db), secret, linkKeyRow(organization_id, id)),
})

/** The expiry of a link that is made at the time `atMs`, in milliseconds. Unix time in seconds. */
export const expiryOf = (kind: LinkKind, atMs: number, lifetime = defaultLifetimes[kind]): number =>
  Math.floor(atMs / 1_000) + lifetime
