import { randomBytes } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import type { Context } from '../db/context.ts'
import { throwInvalidField } from '../organizations/change-definitions.ts'
import { type ConsentType, currentDefinitions } from '../organizations/definitions.ts'
import type { Config } from '../process/config.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import type { Channel } from '../values/channels.ts'
import { refuse } from '../values/errors.ts'
import { type LinkedPerson, readPerson } from './open-link.ts'
import { type ConsentLinks, type ConsentLinksBody, defaultLifetimes } from './schema.ts'
import { insertFirstLinkKeySql, readNewestLinkKeySql } from './sql.ts'
import { type LinkKey, type LinkKind, signLink } from './token.ts'

/** The paths of the pages. A link is one of them with a token. They are short, because a text message is. */
export const paths: Record<LinkKind, string> = { preferences: '/p', unsubscribe: '/u', confirm: '/c' }

type Settings = Pick<Config, 'publicUrl' | 'behindProxy'>

/** Makes the links of a person. Throws a Fault of 404 or 400, or of 500 if kith does not know its own address. */
export async function createConsentLinks(call: Call<ConsentLinksBody>, config: Settings): Promise<ConsentLinks> {
  const { context, body, signal } = call
  const { organization_id } = context
  const base = baseUrlOf(call, config)
  const [person, { consent_types }] = await Promise.all([
    readPerson(context, personOf(call.params), signal),
    currentDefinitions(context, signal),
  ])
  if (!person) return refuse('not_found', 'There is no such person.')
  const { consent_type_id, channel, expires_in } = body
  const type = consent_type_id === undefined ? undefined : findAnswerable(consent_types, consent_type_id, channel)
  const key = await readOrCreateKey(context, signal)
  const urlOf = (kind: LinkKind) => {
    const expiresAt = Math.floor(Date.now() / 1_000) + (expires_in ?? defaultLifetimes[kind])
    const isBound = kind !== 'preferences'
    const bound = {
      consent_type_id: (isBound && consent_type_id) || null,
      channel: (isBound && channel) || null,
    }
    return `${base}${paths[kind]}/${signLink({ kind, organization_id, person_id: person.id, ...bound, expiresAt }, key)}`
  }
  return {
    preferences_url: urlOf('preferences'),
    unsubscribe_url: urlOf('unsubscribe'),
    ...(type && channel && needsConfirmation(type, channel, person) && { confirm_url: urlOf('confirm') }),
  }
}

/**
 * The address that links begin with. A client chooses the header Host and could make links to elsewhere with it, so kith
 * ignores it: without KITH_PUBLIC_URL, the address is the one that the connection itself leads to, on this machine only.
 */
function baseUrlOf({ localUrl }: Call, { publicUrl, behindProxy }: Settings): string {
  if (publicUrl !== undefined) return publicUrl
  const url = localUrl()
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
  if (behindProxy === 0 && ipaddr.process(host).range() === 'loopback') return url
  return refuse(
    'operation_failed',
    'The service does not know the address at which people reach it. Set KITH_PUBLIC_URL, and start it again.',
  )
}

/** The consent type, if it can be answered on the channel. Throws a Fault of 400, like a write that answers it. */
function findAnswerable(types: readonly ConsentType[], id: number, channel: Channel | undefined): ConsentType {
  const type = types.find(candidate => candidate.id === id)
  if (!type) return throwInvalidField('/consent_type_id', 'is not a consent type of the organization')
  if (type.state === 'archived') throwInvalidField('/consent_type_id', 'is an archived consent type')
  if (type.mandatory)
    throwInvalidField('/consent_type_id', 'is a mandatory consent type, which cannot be answered: name another one')
  if (channel && !type.channels.some(entry => entry.channel === channel))
    throwInvalidField('/channel', 'is a channel that the consent type is not configured for')
  return type
}

function needsConfirmation(type: ConsentType, channel: Channel, { answers }: LinkedPerson): boolean {
  const isConfigured = type.channels.some(entry => entry.channel === channel && entry.double_opt_in)
  return isConfigured || answers[`${type.id}:${channel}`]?.pending === true
}

/** The key that signs new links. The first link of an organization creates it. */
async function readOrCreateKey({ db, organization_id }: Context, signal: Signal): Promise<LinkKey> {
  const [key] = await db.query<LinkKey>(readNewestLinkKeySql, [organization_id], signal)
  if (key) return key
  await db.query(insertFirstLinkKeySql, [organization_id, randomBytes(32)], signal)
  const [created] = await db.query<LinkKey>(readNewestLinkKeySql, [organization_id], signal)
  return created!
}
