import type { Static } from 'typebox'
import { findEntity } from '../entities/find-entity.ts'
import { emailKey } from '../entities/match-keys.ts'
import { answerPage } from '../entities/read/answer-page.ts'
import { type RowsOfPage, readPageOfKey, readPortion } from '../entities/read/entity-reader.ts'
import type { Position } from '../entities/read/pagination.ts'
import { readableProjection } from '../entities/read/projection.ts'
import { currentDefinitions, peopleStackId } from '../organizations/definitions.ts'
import type { Limits } from '../process/config.ts'
import type { Call } from '../route/call.ts'
import { accessOf, requireReadable } from '../route/field-rights.ts'
import type { HandlerResult } from '../route/result.ts'
import { pointer, refuse, refuseValues } from '../values/errors.ts'
import { optionals, Type } from '../values/json-schema.ts'
import { mobileKey, notANumber } from '../values/phone-numbers.ts'
import { phoneColumns } from '../values/profile-fields.ts'

/** Body of a look-up, which names an email, a phone or an external identifier. */
export function lookupBody({ emailCharacters, profileCharacters }: Limits) {
  const text = (description: string) => Type.String({ maxLength: profileCharacters, description })
  const description = 'Compared in lower case. Dots and plus signs count.'
  return Type.Object(
    optionals({
      email: Type.String({ format: 'email', maxLength: emailCharacters, description }),
      mobile_prefix: text('Not needed if `mobile_number` begins with + or 00.'),
      mobile_number: text('Compared as the international number (E.164).'),
      external_id: Type.String({
        format: 'external-id',
        description: 'An external identifier, or an alias of a person.',
      }),
    }),
    {
      additionalProperties: false,
      title: 'LookupBody',
      description: 'One of email, phone number and external identifier.',
      examples: [{ email: 'ada@example.com' }],
    },
  )
}
export type LookupBody = Static<ReturnType<typeof lookupBody>>

/** The maximum number of people that a look-up returns. */
const maxPeople = 100

type Sought = { kind: 'email' | 'mobile' | 'external_id'; key: string }

/** Returns the people who have an email, a phone or an external identifier, in order of id. */
export async function lookUpPeople(call: Call<LookupBody>): Promise<HandlerResult> {
  const { context, caller, signal } = call
  const { default_country } = await currentDefinitions(context, signal)
  const sought = soughtIn(call.body, default_country)
  const names = sought.kind === 'mobile' ? phoneColumns : [sought.kind]
  for (const name of names) requireReadable(accessOf(caller, peopleStackId), name, pointer(name))
  const projection = readableProjection(caller, peopleStackId)
  const position: Position = { direction: 'asc', size: maxPeople, projection }
  return answerPage(call, { stack_id: peopleStackId, position }, part => {
    const { kind, key } = sought
    return kind === 'external_id' ? readByName(call, key, part) : readByKey(call, { kind, key }, part)
  })
}

function soughtIn({ email, mobile_prefix, mobile_number, external_id }: LookupBody, country: string | null): Sought {
  const given = [email, mobile_number, external_id].filter(value => value !== undefined)
  if (given.length !== 1)
    refuse('invalid_parameter', 'Look people up by one of email, mobile_number with mobile_prefix, and external_id.', {
      details: [{ path: '', message: 'must have one of email, mobile_number and external_id' }],
    })
  if (mobile_prefix !== undefined && mobile_number === undefined)
    refuseValues({ path: pointer('mobile_prefix'), message: 'belongs to a mobile_number' })
  if (external_id !== undefined) return { kind: 'external_id', key: external_id }
  if (email !== undefined) return { kind: 'email', key: emailKey(email)! }
  const key = mobileKey(mobile_prefix, mobile_number, country)
  if (key === null) refuseValues({ path: pointer('mobile_number'), message: notANumber })
  return { kind: 'mobile', key }
}

/** A page reads rows at once up to this size. The rows after it are read one by one. */
const maxWholeBytes = 1_048_576

/** The statement reads whole rows. If the page shows only some members, it reads the identifiers alone. */
async function readByKey(
  { context, signal }: Call<LookupBody>,
  sought: { kind: 'email' | 'mobile'; key: string },
  part: Position,
): Promise<RowsOfPage> {
  const { projection, maxRowBytes } = part
  if (!projection || maxRowBytes === 0) return readPageOfKey(context, sought, part, signal)
  const page = await readPageOfKey(context, sought, { ...part, maxRowBytes: 0 }, signal)
  const ids = page.rows.split('\n').filter(Boolean)
  if (ids.length === 0) return page
  const portion = { ids, minBytes: maxWholeBytes, projection }
  const { rows, definitions } = await readPortion(context, peopleStackId, portion, signal)
  return { rows: [...rows.filter(row => row !== null), ...ids.slice(rows.length)].join('\n'), definitions }
}

/** Answers with a page of at most one person. */
async function readByName(
  { context, signal }: Call<LookupBody>,
  external_id: string,
  { after_id, projection }: Position,
): Promise<RowsOfPage> {
  const id = after_id ? undefined : await findEntity(context, peopleStackId, { external_id }, signal)
  if (id === undefined) return { rows: '', definitions: await currentDefinitions(context, signal) }
  const portion = { ids: [id], minBytes: 1, projection }
  const { rows, definitions } = await readPortion(context, peopleStackId, portion, signal)
  return { rows: rows.filter(row => row !== null).join(''), definitions }
}
