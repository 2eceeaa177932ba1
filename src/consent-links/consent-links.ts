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

/** The paths of the pages. A link is one of them with a token. They are short, because a text message is. */
export const paths: Record<LinkKind, string> = { preferences: '/p', unsubscribe: '/u', confirm: '/c' }

const daySeconds = 86_400
/** How long a link is valid if the request does not say so, in seconds. */
const defaultLifetimes: Record<LinkKind, number> = {
  preferences: 365 * daySeconds,
  unsubscribe: 365 * daySeconds,
  confirm: 7 * daySeconds,
}

export type LinkSettings = Pick<Config, 'publicUrl' | 'behindProxy'>

export const unknownBase =
  'The service does not know the address at which people reach it. Set KITH_PUBLIC_URL, and start it again.'

/**
 * The address that links begin with. A client chooses the header Host and could make links to elsewhere with it, so kith
 * ignores it: without KITH_PUBLIC_URL, the address is the one that the service itself has, `localUrl`, if it is on this machine only.
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

/** Prepares links of the organization that begin with `base`. The returned function prints the one of a person as a URL. */
export async function prepareLinks(context: LinkContext, base: string, signal?: Signal) {
  const { organization_id } = context
  const { id, secret } = await readOrCreateKey(context, signal)
  // With the bytes of the key in place of the object, signing a link takes 35 µs instead of 7.
  const key = { id, secret: createSecretKey(secret) }
  return (link: Omit<NewLink, 'organization_id'>) =>
    `${base}${paths[link.kind]}/${signLink({ organization_id, ...link }, key)}`
}

/** The key that signs new links. The first link of an organization creates it. */
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

/** The end of a link that is made at a time, in milliseconds: Unix time in seconds. */
export const expiryOf = (kind: LinkKind, atMs: number, lifetime = defaultLifetimes[kind]): number =>
  Math.floor(atMs / 1_000) + lifetime
