import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Static } from 'typebox'
import { channels } from '../../src/values/channels.ts'
import { type Detail, pointer } from '../../src/values/errors.ts'
import { Type } from '../../src/values/json-schema.ts'
import { phoneColumns, profileTexts } from '../../src/values/profile-fields.ts'
import { normalize } from '../../transfer/normalize-name.ts'
import { outcomes } from '../../transfer/profile-answers.ts'
import { listFaults, parseChecked } from '../checked-file.ts'
import { UsageError } from '../command.ts'

const closed = { additionalProperties: false }
const text = Type.String({ minLength: 1 })
/** Names of columns. kith reads the first one that has a value. */
const columns = Type.Array(text, { minItems: 1 })
const notes = Type.Optional(Type.Array(text))

const outcome = Type.Enum(outcomes)

const evidence = {
  time: Type.Optional(columns),
  ip: Type.Optional(columns),
  source: Type.Optional(columns),
}

const rule = Type.Object(
  {
    channel: Type.Enum(channels),
    column: Type.Optional(text),
    status: Type.Optional(Type.Literal(true)),
    list: Type.Optional(Type.Boolean()),
    words: Type.Record(Type.String(), outcome),
    ...evidence,
    refusal: Type.Optional(Type.Object(evidence, closed)),
    method: Type.Optional(Type.Enum(['import', 'double_opt_in'])),
    double_opt_in: Type.Optional(
      Type.Object({ asked: text, asked_ip: text, confirmed: text, confirmed_ip: text }, closed),
    ),
    notes,
  },
  closed,
)
/**
 * Reads answers of one channel from the words of one column, or from the status of the whole file. `refusal` names
 * other columns for the evidence of refusals.
 */
export type Rule = Static<typeof rule>

const profileFile = Type.Object(
  {
    version: Type.Literal(1),
    product: text,
    notes,
    external_id: Type.Object({ columns, prefix: Type.Optional(text), notes }, closed),
    fields: Type.Record(Type.String(), columns),
    phone: Type.Optional(Type.Object({ columns, notes }, closed)),
    time_zone: Type.Optional(text),
    statuses: Type.Optional(columns),
    answers: Type.Array(rule, { minItems: 1 }),
  },
  closed,
)
/**
 * A description of a product's contact export: the columns of a person's fields and answers, and the meaning of the
 * words.
 */
export type Profile = Static<typeof profileFile>

/**
 * Reads a profile: a built-in one by its name, such as `klaviyo`, or a file if the name has a slash or an extension.
 * Throws a UsageError if there is none, and an Error with the path of every wrong value.
 */
export async function readProfile(name: string, pathOf: (file: string) => string): Promise<Profile> {
  const isFile = /[./\\]/.test(name)
  const path = isFile ? pathOf(name) : fileURLToPath(new URL(`profiles/${name}.json`, import.meta.url))
  const bytes = await readFile(path).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw new Error(`${name} cannot be read: ${error.message}`)
    if (isFile) throw new UsageError(`The file ${name} does not exist.`)
    throw new UsageError(`There is no profile ${name}. Use ${await profileNames()}, or a file such as ./mine.json.`)
  })
  return parseProfile(bytes, name)
}

async function profileNames(): Promise<string> {
  const files = await readdir(new URL('profiles/', import.meta.url))
  return files
    .map(file => file.replace(/\.json$/, ''))
    .sort()
    .join(', ')
}

/** Parses a profile. Throws an Error whose message has every fault with its JSON Pointer. */
export function parseProfile(bytes: Buffer, name: string): Profile {
  const buildError = (details: Detail[]) => new Error(listFaults(`The profile ${name}`, details))
  const profile = parseChecked(profileFile, bytes, buildError)
  const faults = ruleFaults(profile)
  if (faults.length > 0) throw buildError(faults)
  return profile
}

function ruleFaults(profile: Profile): Detail[] {
  const statuses = (profile.statuses ?? []).map(normalize)
  return [
    ...Object.keys(profile.fields).flatMap(field =>
      isField(field) ? [] : [{ path: pointer('fields', field), message: fieldMessage }],
    ),
    ...profile.answers.flatMap((rule, index) =>
      answerFaults(rule, statuses).map(({ path, message }) => ({
        path: `${pointer('answers', index)}${path}`,
        message,
      })),
    ),
  ]
}

const fieldNames = profileTexts.filter(name => !(phoneColumns as string[]).includes(name))
const fieldMessage = `is not a field. The fields are ${fieldNames.join(', ')} and attribute_values.<any key>; phone numbers stand in /phone`
const isField = (field: string) => (fieldNames as string[]).includes(field) || /^attribute_values\../.test(field)

function answerFaults({ column, status, words, method, double_opt_in }: Rule, statuses: string[]): Detail[] {
  const faults: Detail[] = []
  const isUnique = new Set(Object.keys(words).map(normalize)).size === Object.keys(words).length
  if ((column === undefined) === (status === undefined))
    faults.push({ path: '', message: 'needs either `column` or `status`' })
  if (column !== undefined && /\*./.test(column))
    faults.push({ path: '/column', message: 'can have a * only at its end' })
  if (Object.keys(words).length === 0) faults.push({ path: '/words', message: 'needs at least one word' })
  if (!isUnique) faults.push({ path: '/words', message: 'has a word twice. Letter case, spaces, - and _ are ignored' })
  if (method !== undefined && double_opt_in !== undefined)
    faults.push({ path: '/double_opt_in', message: 'decides the method, so that `method` cannot stand beside it' })
  if (status)
    for (const word of Object.keys(words))
      if (!statuses.includes(normalize(word)))
        faults.push({ path: pointer('words', word), message: 'is not one of /statuses' })
  return faults
}
