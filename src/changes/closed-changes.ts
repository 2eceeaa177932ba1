import { closeAttributes, closeValues } from '../route/closed-fields.ts'
import { accessOfOwner, type FieldAccess, type Rights } from '../route/field-rights.ts'
import { parseExactly } from '../values/parse-json.ts'

type Values = Record<string, unknown>
type Change = {
  subject: string
  stack_key: string | null
  before: Values | null
  after: Values | null
  links: Values | null
}

/**
 * Returns a function that removes from a change the fields that the caller's role closes. Undefined if it closes none.
 */
export function changeCloser(caller: Rights): ((json: string) => string) | undefined {
  if (!caller.rights) return undefined
  return json => {
    const change = parseExactly(json) as Change
    if (change.subject !== 'person' && change.subject !== 'record') return json
    const access = accessOfOwner(caller, change.stack_key ?? undefined)
    if (!access) return json
    const { before, after, links } = change
    const shown = {
      before: closeSide(before, access),
      after: closeSide(after, access),
      links: closeLinks(links, access),
    }
    return JSON.stringify({ ...change, ...shown })
  }
}

/** The values before or after a change, without closed ones. Nothing shows that a closed attribute changed. */
function closeSide(side: Values | null, access: FieldAccess): Values | null {
  if (!side) return null
  const { attribute_values, ...fields } = closeValues(side, access)
  return isEmpty(attribute_values) ? fields : { ...fields, attribute_values }
}

function closeLinks(links: Values | null, access: FieldAccess): Values | null {
  const shown = links && closeAttributes(links, access)
  return isEmpty(shown) ? null : shown
}

const isEmpty = (values: unknown) => Object.keys(values ?? {}).length === 0

/** Changes as lines of JSON, closed for a caller. */
export function closeChangeLines(lines: string, caller: Rights): string {
  const close = changeCloser(caller)
  return close ? lines.replaceAll(/[^\n]+/g, close) : lines
}

/** Server-sent events, whose data is closed for a caller. */
export function closeEvents(events: Buffer, caller: Rights): Buffer {
  const close = changeCloser(caller)
  if (!close) return events
  return Buffer.from(events.toString().replaceAll(/^data: (.*)$/gm, (_, json: string) => `data: ${close(json)}`))
}
