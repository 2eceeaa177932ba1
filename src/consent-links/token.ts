import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { type Channel, channelOfLinkNumber, channelTable } from '../values/channels.ts'

/**
 * The kinds of links, with their numbers in the links that were already sent. A number never changes and is never
 * reused.
 */
export const linkKinds = { preferences: 0, unsubscribe: 1, confirm: 2 } as const
export type LinkKind = keyof typeof linkKinds

/** A key that signs the links of one organization. */
export type LinkKey = { id: number; secret: Buffer | KeyObject }

/** A key with its secret as bytes. */
export type OpenLinkKey = { id: number; secret: Buffer }

/** The content of a link: the kind of page, the person, the purpose and channel, and the expiry. */
export type ConsentLink = {
  kind: LinkKind
  organization_id: number
  person_id: string
  /** Null for all. */
  consent_type_id: number | null
  channel: Channel | null
  /** Unix time in seconds. */
  expiresAt: number
}

// A token has 32 bytes of content and 16 of HMAC-SHA-256, which are 64 characters of base64url without padding. The
// same content always has the same spelling.
const contentBytes = 32
const macBytes = 16
const tokenPattern = /^[\w-]{64}$/
const version = 1

// The largest number that the column of an organization or a consent type can hold. kith makes no link with a larger
// one.
const maxInteger = 2 ** 31 - 1

const macOf = (secret: LinkKey['secret'], purpose: 'link' | 'form', content: Buffer | string, address = '') =>
  createHmac('sha256', secret)
    .update(`kith ${purpose}\n`)
    .update(content)
    .update(address)
    .digest()
    .subarray(0, macBytes)

/**
 * A link to sign. `address` is the key of the address to which a confirmation is sent. The link confirms this address
 * only.
 */
export type NewLink = ConsentLink & { address?: string | null | undefined }

/** The token of a link: its content with a signature. */
export function signLink(link: NewLink, { id, secret }: LinkKey): string {
  const content = Buffer.alloc(contentBytes)
  content[0] = version * 16 + linkKinds[link.kind]
  content.writeUInt16BE(id, 1)
  content.writeUInt32BE(link.organization_id, 3)
  content.write(link.person_id.replaceAll('-', ''), 7, 'hex')
  content.writeUInt32BE(link.consent_type_id ?? 0, 23)
  content[27] = link.channel === null ? 0 : channelTable[link.channel].linkNumber
  content.writeUInt32BE(link.expiresAt, 28)
  const address = (link.kind === 'confirm' && link.address) || ''
  return Buffer.concat([content, macOf(secret, 'link', content, address)]).toString('base64url')
}

/**
 * Parses a token without verifying its signature. `keyId` is the id of its key. Returns undefined for a text that is no
 * token.
 */
export function parseLink(token: string): (ConsentLink & { keyId: number }) | undefined {
  if (!tokenPattern.test(token)) return undefined
  const bytes = Buffer.from(token, 'base64url')
  const kind = (Object.keys(linkKinds) as LinkKind[]).find(name => linkKinds[name] === bytes[0]! % 16)
  const channel = bytes[27] === 0 ? null : channelOfLinkNumber(bytes[27]!)
  if (Math.floor(bytes[0]! / 16) !== version || kind === undefined || channel === undefined) return undefined
  const [organization_id, consent_type_id] = [bytes.readUInt32BE(3), bytes.readUInt32BE(23)]
  if (organization_id > maxInteger || consent_type_id > maxInteger) return undefined
  return {
    kind,
    keyId: bytes.readUInt16BE(1),
    organization_id,
    person_id: uuidOf(bytes.subarray(7, 23)),
    consent_type_id: consent_type_id || null,
    channel,
    expiresAt: bytes.readUInt32BE(28),
  }
}

const uuidOf = (bytes: Buffer) => bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

/** Whether the key signed the token, for the address if there is one. {@link parseLink} must accept the token. */
export function isSignedBy(token: string, { secret }: LinkKey, address?: string): boolean {
  const bytes = Buffer.from(token, 'base64url')
  return timingSafeEqual(bytes.subarray(contentBytes), macOf(secret, 'link', bytes.subarray(0, contentBytes), address))
}

/**
 * Signs the data that a page of the link showed, so that its form can send it back. A form thus proves which texts and
 * states were shown, even if others are current by then.
 */
export function sealForm(shown: unknown, token: string, { secret }: LinkKey): string {
  const content = Buffer.from(JSON.stringify(shown)).toString('base64url')
  return `${content}.${macOf(secret, 'form', `${token}\n${content}`).toString('base64url')}`
}

/** Returns the data that {@link sealForm} signed for the same link. Undefined if the signature is wrong. */
export function unsealForm(sealed: string, token: string, { secret }: LinkKey): unknown {
  const [content = '', signature = ''] = sealed.split('.')
  const expected = macOf(secret, 'form', `${token}\n${content}`).toString('base64url')
  const isEqual = signature.length === expected.length && timingSafeEqual(Buffer.from(signature), Buffer.from(expected))
  return isEqual ? JSON.parse(Buffer.from(content, 'base64url').toString()) : undefined
}
