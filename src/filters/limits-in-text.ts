import { type Detail, pointer, refuse } from '../errors.ts'
import { endOfString } from '../parse-json.ts'
import { filterLimits, isQuantifier } from './grammar.ts'

/** The role of an object or array in a body, by the grammar of `parseFilter`. `other` has no limit that the text shows. */
type Role = 'body' | 'filter' | 'filters' | 'operators' | 'list' | 'consents' | 'consent' | 'other'

/** An open object or array. `at` is the key or index of its current member, `depth` that of the filter. */
type Frame = { role: Role; at: string | number; depth: number }

/**
 * Throws a Fault of 400, as `parseFilter` does, if the JSON text of a body shows that its `filter` exceeds a limit, in steps: elements of `$in` and
 * `$nin`, conditions, and depth. It reads no further than that. The text need not be JSON: a fault of it is found by the parser.
 */
export function* throwIfOverFilterLimits(text: string): Generator<void, void> {
  const excess = yield* findExcess(text)
  if (excess) refuse('invalid_parameter', 'The filter is invalid.', { details: [excess] })
}

/** The highest limit of nesting that a service can have. */
const maxJsonDepth = 512

/** Reading so many characters takes less than a millisecond. */
const readInAStep = 16_384

function* findExcess(text: string): Generator<void, Detail | undefined> {
  const frames: Frame[] = []
  let conditions = 0
  let lastString = ''
  const excess = (message: string): Detail => ({ path: pointer(...frames.map(({ at }) => at)), message })
  let pauseAt = readInAStep
  for (let offset = 0; offset < text.length; offset++) {
    if (offset >= pauseAt) {
      pauseAt = offset + readInAStep
      yield
    }
    const frame = frames.at(-1)
    const character = text[offset]
    if (character === '"') {
      const end = endOfString(text, offset)
      if (frame?.role !== 'other' && frame?.role !== 'list') lastString = text.slice(offset, end)
      offset = end - 1
    } else if (character === ':' && frame) {
      frame.at = keyOf(lastString)
      if (isCondition(frame, '{['.includes(nextCharacter(text, offset + 1)))) conditions += 1
      if (conditions > filterLimits.conditions)
        return excess(`exceeds the maximum of ${filterLimits.conditions} conditions in a filter`)
    } else if (character === ',' && typeof frame?.at === 'number') {
      frame.at += 1
      if (frame.role !== 'list' || frame.at < filterLimits.listElements) continue
      frames.pop()
      return excess(`must have at most ${filterLimits.listElements} elements`)
    } else if (character === '{' || character === '[') {
      const isObject = character === '{'
      const opened = openedIn(frame, isObject)
      if (opened.role === 'filter' && opened.depth > filterLimits.depth)
        return excess(`is nested deeper than ${filterLimits.depth} levels`)
      // The parser refuses a deeper body.
      if (frames.length === maxJsonDepth) return undefined
      frames.push({ ...opened, at: isObject ? '' : 0 })
    } else if (character === '}' || character === ']') {
      frames.pop()
      if (frames.at(-1)?.role === 'body' && frames.at(-1)?.at === 'filter') return undefined
    }
  }
  return undefined
}

function nextCharacter(text: string, from: number): string {
  let at = from
  while (' \n\r\t'.includes(text[at] ?? 'end')) at++
  return text[at] ?? 'end'
}

/** The key of a member, of which the text is a JSON string. */
function keyOf(text: string): string {
  if (!text.includes('\\')) return text.slice(1, -1)
  try {
    return JSON.parse(text) as string
  } catch {
    return ''
  }
}

/** Whether the current member counts as a condition. `isOpening` tells whether its value is an object or an array. */
function isCondition({ role, at }: Frame, isOpening: boolean): boolean {
  if (role === 'operators') return at !== '$where'
  if (role === 'consents') return at === '$some'
  if (role === 'filter' && at === 'contactable') return true
  return role === 'filter' && !isOpening && (at === '$segment' || !`${at}`.startsWith('$'))
}

function openedIn(frame: Frame | undefined, isObject: boolean): Pick<Frame, 'role' | 'depth'> {
  if (!frame) return { role: isObject ? 'body' : 'other', depth: 0 }
  const { role, at, depth } = frame
  const key = `${at}`
  const deeper = (opened: Role) => ({ role: opened, depth: depth + 1 })
  if (role === 'body' && key === 'filter' && isObject) return deeper('filter')
  if (role === 'filters' && isObject) return { role: 'filter', depth }
  if (role === 'filter') {
    if (isObject ? key === '$not' : key === '$and' || key === '$or') return deeper(isObject ? 'filter' : 'filters')
    if (key === 'contactable') return { role: 'other', depth }
    if (isObject && !key.startsWith('$')) return { role: key === 'consents' ? 'consents' : 'operators', depth }
  }
  if (role === 'operators') {
    if (isObject && (isQuantifier(key) || key === '$where')) return deeper('filter')
    if (!isObject && (key === '$in' || key === '$nin')) return { role: 'list', depth }
  }
  if (role === 'consents' && isObject && key === '$some') return { role: 'consent', depth }
  if (role === 'consent' && isObject) return { role: 'operators', depth }
  return { role: 'other', depth }
}
