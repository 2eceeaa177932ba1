import { fail, pointer } from '../errors.ts'
import {
  type Author,
  changeDefinitions,
  type DefinitionChange,
  differences,
  nextId,
  throwIfLimitReached,
  throwInvalidField,
  throwKeyTaken,
} from '../organizations/change-definitions.ts'
import type { ConsentType, Definitions } from '../organizations/definitions.ts'
import type { ConsentTypePatch, NewConsentType } from './schema.ts'
import { insertConsentTypeSql, updateConsentTypeSql } from './sql.ts'

type Channels = ConsentType['channels']

/** The consent type of that id; a Fault of 404 where there is none. */
export function findConsentType({ consent_types }: Definitions, id: number): ConsentType {
  return consent_types.find(type => type.id === id) ?? fail('not_found', 'There is no such consent type.')
}

export async function createConsentType(author: Author, body: NewConsentType): Promise<ConsentType> {
  let id = 0
  const definitions = await changeDefinitions(author, (standing, at) => {
    const { consent_types } = standing
    if (consent_types.some(type => type.key === body.key)) throwKeyTaken('is the key of another consent type')
    throwIfLimitReached('consent_types', standing, author.limits)
    id = nextId(consent_types)
    const { key, name = key, description = null, mandatory = false, default_state = false } = body
    const state = 'active' as const
    const times = { created_at: at, updated_at: at }
    const type = {
      id,
      key,
      name,
      description,
      state,
      mandatory,
      default_state,
      channels: channelsOf(body.channels),
      ...times,
    }
    refuseMandatoryDefault(type)
    const { id: _, created_at, updated_at, ...after } = type
    const made = { subject: 'consent_type', id, operation: 'create', before: {}, after } as const
    return [...takeMarks(type, consent_types, at), { ...made, store: insertConsentTypeSql, values: valuesOf(type, at) }]
  })
  return findConsentType(definitions, id)
}

export async function patchConsentType(author: Author, id: number, patch: ConsentTypePatch): Promise<ConsentType> {
  const definitions = await changeDefinitions(author, (standing, at) => {
    const type = findConsentType(standing, id)
    const wanted = patch.channels ? { ...patch, channels: channelsOf(patch.channels) } : patch
    const next = { ...type, ...wanted } as ConsentType
    if (next.state === 'archived') refuseArchivedDefault(next, patch)
    refuseMandatoryDefault(next)
    return [...takeMarks(next, standing.consent_types, at), ...changeOf(type, next, at)]
  })
  return findConsentType(definitions, id)
}

function channelsOf(given: NewConsentType['channels']): Channels {
  const twice = given.findIndex(({ channel }, index) => given.findIndex(other => other.channel === channel) < index)
  if (twice !== -1) throwInvalidField(pointer('channels', twice, 'channel'), 'is given twice')
  return given.map(({ channel, is_default = false }) => ({ channel, is_default }))
}

function refuseMandatoryDefault({ mandatory, channels }: ConsentType) {
  const marked = channels.findIndex(channel => channel.is_default)
  if (mandatory && marked !== -1)
    throwInvalidField(
      pointer('channels', marked, 'is_default'),
      'a mandatory consent type cannot be the default of a channel',
    )
}

/** Archiving takes the marks away: a type that comes back does not take its channels back by itself. */
function refuseArchivedDefault(next: ConsentType, patch: ConsentTypePatch) {
  const marked = patch.channels?.findIndex(channel => channel.is_default) ?? -1
  if (marked !== -1)
    throwInvalidField(
      pointer('channels', marked, 'is_default'),
      'an archived consent type cannot be the default of a channel',
    )
  next.channels = unmarked(next.channels, () => true)
}

const unmarked = (channels: Channels, taken: (channel: Channels[number]) => boolean): Channels =>
  channels.map(entry => (taken(entry) ? { ...entry, is_default: false } : entry))

/** Marking a type as a channel's default moves the mark: the active types that had it lose it. */
function takeMarks(type: ConsentType, others: readonly ConsentType[], at: string): DefinitionChange[] {
  const marks = new Set(type.channels.filter(entry => entry.is_default).map(entry => entry.channel))
  return others
    .filter(other => other.id !== type.id && other.state === 'active')
    .flatMap(other =>
      changeOf(other, { ...other, channels: unmarked(other.channels, ({ channel }) => marks.has(channel)) }, at),
    )
}

function changeOf(type: ConsentType, next: ConsentType, at: string): DefinitionChange[] {
  const changed = differences(type, next)
  if (!changed) return []
  const { id } = type
  return [
    {
      subject: 'consent_type',
      id,
      operation: 'update',
      ...changed,
      store: updateConsentTypeSql,
      values: valuesOf(next, at),
    },
  ]
}

function valuesOf(type: ConsentType, at: string): unknown[] {
  const { id, key, name, description, state, mandatory, default_state, channels } = type
  return [id, key, name, description, state, mandatory, default_state, JSON.stringify(channels), at]
}
