import { createHash } from 'node:crypto'
import type { Context } from '../db/context.ts'
import { awaitPipelined } from '../db/db.ts'
import {
  changeDefinitions,
  type DefinitionCall,
  type DefinitionChange,
  differences,
  nextId,
  throwIfLimitReached,
  throwKeyTaken,
} from '../organizations/change-definitions.ts'
import { type ConsentType, currentDefinitions, type Definitions } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import { listPage } from '../route/result.ts'
import { pointer, refuse, throwBrokenRule } from '../values/errors.ts'
import type { ConsentText, ConsentTextBody, ConsentTypeBody, ConsentTypePatch, TextsQuery } from './schema.ts'
import {
  insertConsentTextSql,
  insertConsentTypeSql,
  readConsentTextsSql,
  touchConsentTypeSql,
  updateConsentTypeSql,
} from './sql.ts'

type Channels = ConsentType['channels']

/** The consent type with that id. Throws a Fault of 404 if there is none. */
export function findConsentType({ consent_types }: Definitions, id: number): ConsentType {
  return consent_types.find(type => type.id === id) ?? refuse('not_found', 'There is no such consent type.')
}

/** Creates a consent type. Throws a Fault of 400 or 409 if the body breaks a rule. */
export async function createConsentType(call: DefinitionCall, body: ConsentTypeBody): Promise<ConsentType> {
  let id = 0
  const definitions = await changeDefinitions(call, (current, at) => {
    const { consent_types } = current
    if (consent_types.some(type => type.key === body.key)) throwKeyTaken('is the key of another consent type')
    throwIfLimitReached('consent_types', current, call.limits)
    id = nextId(consent_types)
    const { key, name = key, description = null, mandatory = false, default_state = false } = body
    const channels = channelsOf(body.channels)
    const after = {
      key,
      name,
      description,
      state: 'active',
      mandatory,
      default_state,
      channels,
      text_versions: 0,
    } as const
    const type = { id, ...after, created_at: at, updated_at: at }
    throwIfMandatoryDefault(type)
    const store: DefinitionChange['store'] = (version, { tx, organization_id }) =>
      tx.query(insertConsentTypeSql, [organization_id, ...valuesOf(type, at), version])
    return [
      ...removeOtherMarks(type, consent_types, at),
      { subject: 'consent_type', id, operation: 'create', before: {}, after, store },
    ]
  })
  return findConsentType(definitions, id)
}

/** Changes or archives a consent type. Throws a Fault of 404 or 400. */
export async function patchConsentType(
  call: DefinitionCall,
  id: number,
  patch: ConsentTypePatch,
): Promise<ConsentType> {
  const definitions = await changeDefinitions(call, (current, at) => {
    const type = findConsentType(current, id)
    const normalized = patch.channels ? { ...patch, channels: channelsOf(patch.channels) } : patch
    const next = { ...type, ...normalized } as ConsentType
    if (next.state === 'archived') removeArchivedMarks(next, patch)
    throwIfMandatoryDefault(next)
    return [...removeOtherMarks(next, current.consent_types, at), ...changesOf(type, next, at)]
  })
  return findConsentType(definitions, id)
}

/** The channels of a body, with its defaults filled in. Throws a Fault of 400 if a channel is given twice. */
function channelsOf(given: ConsentTypeBody['channels']): Channels {
  const duplicate = given.findIndex(({ channel }, index) => given.findIndex(other => other.channel === channel) < index)
  if (duplicate !== -1) throwBrokenRule(pointer('channels', duplicate, 'channel'), 'is given twice')
  return given.map(({ channel, is_default = false, double_opt_in = false }) => ({ channel, is_default, double_opt_in }))
}

function throwIfMandatoryDefault({ mandatory, channels }: ConsentType) {
  if (mandatory) throwIfMarked(channels, 'a mandatory')
}

/** Throws a Fault of 400 if a channel has the default mark. */
function throwIfMarked(channels: ConsentTypeBody['channels'], kind: string) {
  const index = channels.findIndex(channel => channel.is_default)
  const path = pointer('channels', index, 'is_default')
  if (index !== -1) throwBrokenRule(path, `${kind} consent type cannot be the default of a channel`)
}

/**
 * Archiving removes the default marks, so a type that is activated again is not the default of its channels. Throws a
 * Fault of 400 if the patch itself sets a mark.
 */
function removeArchivedMarks(next: ConsentType, { channels = [] }: ConsentTypePatch) {
  throwIfMarked(channels, 'an archived')
  next.channels = withoutMarks(next.channels, () => true)
}

const withoutMarks = (channels: Channels, isRemoved: (channel: Channels[number]) => boolean): Channels =>
  channels.map(entry => (isRemoved(entry) ? { ...entry, is_default: false } : entry))

/** The changes that remove a channel's default mark from the other active types, because `type` takes it. */
function removeOtherMarks(type: ConsentType, others: readonly ConsentType[], at: string): DefinitionChange[] {
  const marks = new Set(type.channels.filter(entry => entry.is_default).map(entry => entry.channel))
  return others
    .filter(other => other.id !== type.id && other.state === 'active')
    .flatMap(other =>
      changesOf(other, { ...other, channels: withoutMarks(other.channels, ({ channel }) => marks.has(channel)) }, at),
    )
}

function changesOf(type: ConsentType, next: ConsentType, at: string): DefinitionChange[] {
  const changed = differences(type, next)
  if (!changed) return []
  const store: DefinitionChange['store'] = (version, { tx, organization_id }) =>
    tx.query(updateConsentTypeSql, [organization_id, ...valuesOf(next, at), version])
  return [{ subject: 'consent_type', id: type.id, operation: 'update', ...changed, store }]
}

function valuesOf(type: ConsentType, at: string) {
  const { id, key, name, description, state, mandatory, default_state, channels } = type
  return [id, key, name, description, state, mandatory, default_state, JSON.stringify(channels), at] as const
}

/** The maximum size of a text, in bytes of UTF-8. */
const maxTextBytes = 65_536
/** A page of texts of the maximum size has 1.3 MB. */
const defaultLimit = 20

/** Adds a version to the texts of a consent type. Throws a Fault of 404 or 400. */
export async function addConsentText(call: DefinitionCall, id: number, body: ConsentTextBody): Promise<ConsentText> {
  const { language, text, url = null } = body
  if (Buffer.byteLength(text) > maxTextBytes) throwBrokenRule('/text', `must be at most ${maxTextBytes} bytes in UTF-8`)
  if (url !== null && !isWebAddress(url)) throwBrokenRule('/url', 'must be an http or https URL')
  const sha256 = createHash('sha256').update(text).digest('hex')
  const added = { version: 0, language, text, url, sha256, created_at: '' }
  await changeDefinitions(call, async (current, at, tx) => {
    const before = { text_versions: findConsentType(current, id).text_versions }
    const after = { text_versions: before.text_versions + 1 }
    Object.assign(added, { version: after.text_versions, created_at: at })
    const values = [call.organization_id, id, added.version, language, text, url, sha256, at]
    const store = (version: number) =>
      awaitPipelined([
        tx.query(touchConsentTypeSql, [call.organization_id, id, at, version]),
        tx.query(insertConsentTextSql, values),
      ])
    return [{ subject: 'consent_type', id, operation: 'update', before, after, store }]
  })
  return added
}

const isWebAddress = (text: string) => /^https?:$/.test(URL.parse(text)?.protocol ?? '')

/** Reads one version. Throws a Fault of 404. */
export async function findConsentText(
  context: Context,
  id: number,
  version: number,
  signal: Signal,
): Promise<ConsentText> {
  const [text] = (await listConsentTexts(context, id, { after: version - 1, limit: 1 }, signal)).items
  return text?.version === version ? text : refuse('not_found', 'There is no such text.')
}

/** Lists the texts of a consent type in order of version. Throws a Fault of 404. */
export async function listConsentTexts(
  context: Context,
  id: number,
  { after = 0, limit = defaultLimit }: TextsQuery,
  signal: Signal,
): Promise<{ items: ConsentText[]; has_more: boolean }> {
  const { db, organization_id } = context
  findConsentType(await currentDefinitions(context, signal), id)
  const texts = await db.query<ConsentText>(readConsentTextsSql, [organization_id, id, after, limit + 1], signal)
  return listPage(texts, limit)
}
