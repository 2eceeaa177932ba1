import { ApiRefusal } from './api.ts'

/** The maximum size of a tool's answer in bytes, with its notes. */
export const maxAnswerBytes = 20_000
/** The bytes reserved for the notes and for the marks around the data. */
const noteBytes = 1_800
const maxDataBytes = maxAnswerBytes - noteBytes

/** A tool's answer in the form that its client gets. */
export type ToolResult = { content: { type: 'text'; text: string }[]; isError?: true }

/**
 * The data that a tool found. `list` is the member that may be cut, and `rest` are the members that are valid only for
 * the whole list.
 */
export type Found = { data: Record<string, unknown>; list?: string; rest?: readonly string[]; note?: string }

const marks = ['<kith-data>', '</kith-data>'] as const

/** Characters that could end the marked data, that are invisible, or that change the order of others. */
const hidden = /[<\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

const escapeCharacter = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('')

/** JSON without `<` and without hidden characters. They occur only in strings, where an escape means the same. */
const print = (value: unknown): string => JSON.stringify(value).replace(hidden, escapeCharacter)

const bytesOf = (value: unknown): number => Buffer.byteLength(print(value))

/** Whether data fits into an answer as a whole. */
export const fits = (data: unknown): boolean => bytesOf(data) <= maxDataBytes

/** The text of stored data, between marks that no stored text can close. */
const mark = (value: unknown): string => `${marks[0]}\n${print(value)}\n${marks[1]}`

const resultOf = (note: string, value: unknown): ToolResult => ({
  content: [{ type: 'text', text: `${note}${note && '\n'}${mark(value)}` }],
})

/** Builds a tool's answer. A list that is too long is cut, and the note explains how to get the rest. */
export function answer({ data, list, rest = [], note = '' }: Found): ToolResult {
  if (fits(data)) return resultOf(note, data)
  const items = (list === undefined ? [] : data[list]) as unknown[]
  const others = Object.fromEntries(Object.entries(data).filter(([name]) => name !== list && !rest.includes(name)))
  const shown = itemsWithin(items, maxDataBytes - bytesOf(others))
  if (shown.length === 0) return refuseSize(items[0] ?? data)
  const advice = `Only the first ${shown.length} of ${items.length} ${list} fit. Ask for fewer fields, or for at most ${shown.length} at a time.`
  return resultOf(`${note}${note && '\n'}${advice}`, { ...others, [list!]: shown })
}

function itemsWithin(items: unknown[], bytes: number): unknown[] {
  let left = bytes
  for (const [index, item] of items.entries()) {
    left -= bytesOf(item) + 1
    if (left < 0) return items.slice(0, index)
  }
  return items
}

/** The maximum number of members that the refusal of a large entity lists. */
const maxListed = 40

/**
 * Replaces a single entity that is too large by the list of its members by size, so that the next request can select
 * fields.
 */
function refuseSize(entity: unknown): ToolResult {
  const { attribute_values: values, ...members } = entity as Record<string, unknown>
  const named = [
    ...Object.entries(members),
    ...Object.entries(values ?? {}).map(([key, value]) => [`attribute_values.${key}`, value] as const),
  ]
  const sizes = named.map(([name, value]) => [name.slice(0, 200), bytesOf(value ?? null)] as const)
  const largest = sizes.sort(([, a], [, b]) => b - a).slice(0, maxListed)
  const note = `An entity has more than ${maxDataBytes} bytes, and is not shown. Ask for it with fields, without the largest ones. Their bytes are:`
  return { ...resultOf(note, Object.fromEntries(largest)), isError: true }
}

const advices: Record<number, string> = {
  400: 'Correct what details names. describe_schema shows the attributes and valid filters.',
  401: 'The token is missing, expired or revoked. A person must give another one.',
  403: 'The scopes or the role of the token do not allow this. Leave out what details names, or tell the person.',
  404: 'Find the identifier with search or filter, and owners with describe_schema.',
  409: 'It contradicts what is stored. Read the entity with get.',
  412: 'The entity has changed since the dry run. Read it with get, and make a new dry run.',
  429: 'Too many requests. Wait a minute.',
  503: 'The service is busy. Repeat the call in a few seconds.',
  504: 'The request took too long. Ask for less. The conditions that details names need an index.',
}

/** Builds the answer for a refused request: the reason, the place, and what to do. Throws any other error. */
export function refusal(error: unknown): ToolResult {
  if (!(error instanceof ApiRefusal)) throw error
  const { status, error: code, message, details } = error.refused
  const advice = code === 'not_found' ? advices[404] : advices[status]
  const note = `kith refused the request (${status}).${advice ? ` ${advice}` : ''}`
  const shown = details
    .slice(0, 20)
    .map(({ path, message }) => ({ path: path.slice(0, 300), message: message.slice(0, 300) }))
  return { ...resultOf(note, { error: code, message: message.slice(0, 500), details: shown }), isError: true }
}
