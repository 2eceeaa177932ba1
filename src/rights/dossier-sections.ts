import { toEntry } from '../accesses/answer.ts'
import { readEntries } from '../accesses/read-entries.ts'
import { type ChangePage, parseChanges, readNamed } from '../changes/change-json.ts'
import { readHistorySql } from '../changes/sql.ts'
import { type AnswerRow, recordedAnswer } from '../consents/history.ts'
import { readAnswersAfterSql } from '../consents/recorded-answers-sql.ts'
import type { Row, Statement } from '../db/db.ts'
import type { Snapshot } from '../db/snapshot.ts'
import { printEntity } from '../entities/read/entity-json.ts'
import { unlimitedRowBytes } from '../entities/read/pagination.ts'
import { readByIdentifier, readPortionSql } from '../entities/read/read-sql.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import type { Shown } from '../route/shown.ts'
import { firstId, recordIdOf } from '../values/formats.ts'
import type { LineType } from './dossier-schema.ts'
import {
  readAboutSql,
  readAddressesSql,
  readAliasesSql,
  readDeliveriesSql,
  readErasuresSql,
  readHoldsSql,
  readJobRefusalsSql,
  readLinksSql,
  readMergedAddressesSql,
  readMergesSql,
  readNoticesSql,
  readOwnSql,
  readSegmentsSql,
  readSetAsidesSql,
  readTextsSql,
} from './dossier-sql.ts'
import { readOtherHolders } from './subject.ts'

/** The people of a dossier, and the snapshot that its sections read. */
export type DossierSource = {
  db: Snapshot
  organization_id: number
  definitions: Definitions
  id: string
  /** The person, and the people who were merged into it. */
  people: string[]
  made_by: string
  request_id: string
  /** The external identifier in the request. */
  name: string | undefined
  /** Records the linked records for the access log. */
  shown: Shown
}

/**
 * The lines of one type. `read` yields the other members of each line, as an object or as JSON. The lines show rows of
 * `tables`.
 */
type Section = { type: LineType; tables: string[]; read(source: DossierSource): AsyncGenerator<string | object> }

/** A statement reads at most this many rows, texts of up to 64 KiB, or bytes of records and changes. */
const rowsPerRead = 500
const textsPerRead = 10
const bytesPerRead = 512 * 1024

/** Higher than every version. */
const noVersion = 2_147_483_647

/**
 * The sections of a dossier in order. Each section reads while it is sent, so a dossier of any size needs little
 * memory.
 */
export const dossierSections: readonly Section[] = [
  { type: 'about', tables: [], read: readAbout },
  { type: 'profile', tables: ['entities'], read: readProfile },
  { type: 'attribute', tables: ['entities'], read: readAttributes },
  { type: 'match_keys', tables: ['entities'], read: readMatchKeys },
  { type: 'alias', tables: ['aliases', 'merges'], read: readAliases },
  { type: 'consent', tables: ['entities'], read: readConsents },
  { type: 'consent_answer', tables: ['consent_history'], read: readAnswers },
  { type: 'address', tables: ['deliverability'], read: readAll(readAddressesSql) },
  { type: 'text', tables: ['consent_texts'], read: readTexts },
  { type: 'link', tables: ['links'], read: readLinks },
  { type: 'record', tables: ['entities'], read: readRecords },
  { type: 'merge', tables: ['merges'], read: readMerges },
  { type: 'segment', tables: ['segment_members', 'segment_changes'], read: readSegments },
  { type: 'hold', tables: ['person_holds'], read: readAll(readHoldsSql) },
  { type: 'set_aside', tables: ['set_aside_people'], read: readAll(readSetAsidesSql) },
  { type: 'retention', tables: ['retention_notices'], read: readAll(readNoticesSql) },
  { type: 'job_refusal', tables: ['job_refusals'], read: readAll(readJobRefusalsSql) },
  { type: 'delivery', tables: ['webhook_deliveries'], read: readDeliveries },
  { type: 'erasure', tables: ['erasures'], read: readAll(readErasuresSql) },
  { type: 'change', tables: ['changes'], read: readChanges },
  { type: 'access', tables: ['access_batches'], read: readAccesses },
]

/** The tables with data of a person that no section shows, and the reason. */
export const notInDossier: Readonly<Record<string, string>> = {
  access_index: 'where the entries of the access log are, by hashes',
  address_answers: 'copies of answers, under the address that the person had then',
  idempotency_keys: 'copies of responses, with the values of the row and of the log, for 24 hours',
  ledger_entries: 'hashes and salts of the answers, which the receipt of each answer shows',
  search_documents: 'copies of words of the row',
  search_features: 'copies of parts of these words',
  search_words: 'copies of these words',
  terms: 'copies of indexed attributes',
  tombstones: 'hashes of identifiers, made by an erasure',
}

async function* readAbout(source: DossierSource) {
  const { db, organization_id, id, people, made_by, request_id, name } = source
  type About = Record<'organization' | 'at' | 'log_id', string> & { head: number } & Record<
      'display_name' | 'contact_email' | 'privacy_url' | 'operation' | 'external_id',
      string | null
    >
  const [facts] = await db.query<About>(readAboutSql, [organization_id, id])
  const { organization: key, display_name, contact_email, privacy_url, at, head, log_id } = facts!
  const person = await readPerson(source)
  const state = person?.state ?? (facts!.operation === 'erase' ? 'erased' : 'deleted')
  const external_id = person ? person.external_id : facts!.external_id
  yield {
    person: { id, external_id, state, merged_ids: people.slice(1) },
    organization: { key, display_name, contact_email, privacy_url },
    ...{ at, head, log_id, made_by, request_id, other_holders: await readOtherHolders(source, name, id) },
  }
}

type Consent = { consent_type_id: number; channel: string }
type Person = Record<string, unknown> & { external_id: string | null; state: string; consents: Consent[] }

/** Returns the person as a read shows it. Undefined for a deleted or erased person. */
export async function readPerson({ db, organization_id, definitions, id }: DossierSource): Promise<Person | undefined> {
  const values = [organization_id, peopleStackId, [id], unlimitedRowBytes, false]
  const [found] = await db.query<{ row: string | null }>(readByIdentifier.id, values)
  return found && JSON.parse(printEntity(found.row!, definitions, peopleStackId))
}

async function* readProfile(source: DossierSource) {
  const person = await readPerson(source)
  if (!person) return
  const { consents: _, attribute_values: __, ...fields } = person
  yield fields
}

type Own = { attributes: Record<string, unknown> } & Record<'email_key' | 'mobile_key' | 'name_key', string | null>

async function readOwn({ db, organization_id, id }: DossierSource): Promise<Own | undefined> {
  const [own] = await db.query<Own>(readOwnSql, [organization_id, id])
  return own
}

async function* readAttributes(source: DossierSource) {
  const own = await readOwn(source)
  const declared = source.definitions.declared.get(peopleStackId)
  for (const [key, value] of Object.entries(own?.attributes ?? {})) {
    const { name = key, description = null } = declared?.get(key) ?? {}
    yield { key, name, description, is_declared: declared?.has(key) ?? false, value }
  }
}

async function* readMatchKeys(source: DossierSource) {
  const own = await readOwn(source)
  if (!own) return
  const { email_key: email, mobile_key: mobile, name_key: name } = own
  if (email !== null || mobile !== null || name !== null) yield { email, mobile, name }
}

/**
 * Reads the rows of a statement about `subject` in parts of `limit`, each part after the last row of the previous one.
 * `first` has the columns of the order, with values that precede every row.
 */
async function* readInParts<R extends Row>(
  { db, organization_id }: DossierSource,
  sql: Statement,
  subject: unknown,
  first: Row,
  limit = rowsPerRead,
): AsyncGenerator<R> {
  let last: Row | undefined = first
  while (last !== undefined) {
    const after = last
    const position = Object.keys(first).map(column => after[column])
    const rows: R[] = await db.query<R>(sql, [organization_id, subject, ...position, limit])
    yield* rows
    last = rows.length < limit ? undefined : rows.at(-1)
  }
}

async function* readAliases(source: DossierSource) {
  yield* readInParts(source, readAliasesSql, source.people, { value: '' })
  type Led = { email_key: string | null; mobile_key: string | null; created_at: string; merge_id: number }
  const led = readInParts<Led>(source, readMergedAddressesSql, source.people, { merge_id: 0 })
  for await (const { email_key, mobile_key, ...rest } of led) {
    if (email_key !== null) yield { kind: 'email', value: email_key, ...rest }
    if (mobile_key !== null) yield { kind: 'mobile', value: mobile_key, ...rest }
  }
}

function readMerges(source: DossierSource) {
  return readInParts(source, readMergesSql, source.people, { merge_id: 0 }, textsPerRead)
}

/** The name of a consent type, including archived ones. */
const consentType = ({ consent_types }: Definitions, id: number) => consent_types.find(type => type.id === id)
const consentTypeName = (definitions: Definitions, id: number) => consentType(definitions, id)?.name ?? String(id)

async function* readConsents(source: DossierSource) {
  const person = await readPerson(source)
  for (const consent of person?.consents ?? []) {
    const { key: consent_type_key, name: consent_type_name } = consentType(source.definitions, consent.consent_type_id)!
    yield { ...consent, consent_type_key, consent_type_name }
  }
}

const beforeAnswers = { version: 0, consent_type_id: 0, channel: '' }

async function* readAnswers(source: DossierSource) {
  for (const person_id of source.people)
    for await (const answer of readInParts<AnswerRow & Row>(source, readAnswersAfterSql, person_id, beforeAnswers)) {
      const { consent_type_id, channel, sequence } = answer
      const consent_type_name = consentTypeName(source.definitions, consent_type_id)
      const receipt = `/v1/people/internal/${person_id}/consents/${consent_type_id}/${channel}/receipt?sequence=${sequence}`
      yield { person_id, consent_type_name, ...recordedAnswer(answer), receipt }
    }
}

const beforeTexts = { consent_type_id: 0, version: 0 }

async function* readTexts(source: DossierSource) {
  type Text = Row & { consent_type_id: number }
  for await (const text of readInParts<Text>(source, readTextsSql, source.people, beforeTexts, textsPerRead))
    yield { ...text, consent_type_name: consentTypeName(source.definitions, text.consent_type_id) }
}

type Direction = 'out' | 'in'
type LinkRow = { attribute_id: number; stack_id: number; id: string; external_id: string | null; is_first: boolean }

const directions: Direction[] = ['out', 'in']

const readLinksOf = (source: DossierSource, direction: Direction) =>
  readInParts<LinkRow>(source, readLinksSql[direction], source.id, { attribute_id: 0, id: firstId })

/** The internal identifier as reads show it, and the stack of a record. */
function entityOf({ stacks }: Definitions, { stack_id, id }: LinkRow) {
  if (stack_id === peopleStackId) return { stack_key: null, id }
  return { stack_key: stacks.find(stack => stack.id === stack_id)?.key ?? null, id: recordIdOf(id) }
}

async function* readLinks(source: DossierSource) {
  const { definitions } = source
  for (const direction of directions)
    for await (const link of readLinksOf(source, direction)) {
      const { key: attribute_key = null, name: attribute_name = null } =
        definitions.attributeById.get(link.attribute_id) ?? {}
      const { external_id } = link
      yield { direction, attribute_key, attribute_name, ...entityOf(definitions, link), external_id }
    }
}

/** The records that are linked with the person, each once. */
async function* readRecords(source: DossierSource) {
  for (const direction of directions) {
    const idsByStack = new Map<number, string[]>()
    for await (const { stack_id, id, is_first } of readLinksOf(source, direction)) {
      if (stack_id === peopleStackId || !is_first) continue
      const ids = idsByStack.get(stack_id) ?? []
      idsByStack.set(stack_id, ids)
      if (ids.push(id) < rowsPerRead) continue
      idsByStack.delete(stack_id)
      yield* readRecordsOf(source, stack_id, ids)
    }
    for (const [stack_id, ids] of idsByStack) yield* readRecordsOf(source, stack_id, ids)
  }
}

async function* readRecordsOf(source: DossierSource, stack_id: number, ids: string[]) {
  const { db, organization_id, definitions, shown } = source
  shown.addAll(stack_id, ids)
  for (let done = 0; done < ids.length; ) {
    const values = [organization_id, stack_id, ids.slice(done), bytesPerRead]
    const portion = await db.query<{ row: string | null }>(readPortionSql, values)
    for (const { row } of portion) if (row !== null) yield printEntity(row, definitions, stack_id)
    done += portion.length
  }
}

async function* readSegments(source: DossierSource) {
  type Entry = Row & { sequence: number }
  for (const person_id of source.people) {
    const entries = readInParts<Entry>(source, readSegmentsSql, person_id, { segment_id: 0, sequence: -1 })
    for await (const { segment_id: _, sequence, ...row } of entries)
      yield { person_id, ...row, sequence: sequence === 0 ? null : sequence }
  }
}

async function* readDeliveries({ db, organization_id, people }: DossierSource) {
  type Delivery = Row & { person_version: number; webhook_id: number | null; url: string | null }
  for (const person of people)
    for (let version: number | undefined = 0; version !== undefined; ) {
      const values = [organization_id, person, version, rowsPerRead]
      const rows: Delivery[] = await db.query<Delivery>(readDeliveriesSql, values)
      for (const { person_version: _, url, ...delivery } of rows)
        if (delivery.webhook_id !== null) yield { ...delivery, receiver: originOf(url) }
      const versions: Set<number> = new Set(rows.map(row => row.person_version))
      version = versions.size < rowsPerRead ? undefined : rows.at(-1)!.person_version
    }
}

/** Returns the origin of a webhook's URL, because the rest may contain a secret. */
const originOf = (url: string | null) => (url === null ? null : (URL.parse(url)?.origin ?? null))

/** Reads all rows about the people at once, because there are few. */
function readAll(sql: Statement) {
  return async function* ({ db, organization_id, people }: DossierSource) {
    yield* await db.query(sql, [organization_id, people])
  }
}

async function* readAccesses(source: DossierSource) {
  const { definitions, people } = source
  for await (const found of readEntries(source, { entities: people })) {
    if (!('entry' in found)) continue
    const { ids, ...entry } = toEntry(found, definitions)
    // The request may have shown other people, whose ids do not belong in this dossier.
    yield { ...entry, ids: ids.filter(id => people.includes(id)) }
  }
}

async function* readChanges(source: DossierSource) {
  const { db, organization_id, people } = source
  for (const person of people)
    for (let before = noVersion, hasMore = true; hasMore; ) {
      const values: unknown[] = [organization_id, person, peopleStackId, before, rowsPerRead, bytesPerRead]
      const [page]: ChangePage[] = await db.query<ChangePage>(readHistorySql, values)
      const { matched, count } = page!
      const changes = parseChanges(await readNamed(source, page!))
      for (const { json } of changes) yield json
      hasMore = matched === rowsPerRead || count < matched
      if (hasMore) before = JSON.parse(changes.at(-1)!.json).version
    }
}
