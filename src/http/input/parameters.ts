import { fail } from '../../errors.ts'
import { isExternalId, isObjectId, isUuid } from '../../formats.ts'
import type { ParameterKind, Route } from '../pipeline/route.ts'
import { checkText } from './trim.ts'

const kinds: Record<ParameterKind, { holds: (text: string) => boolean; message: string }> = {
  external_id: { holds: isExternalId, message: 'must be an external identifier of 1 to 255 characters' },
  uuid: { holds: isUuid, message: 'must be a UUID' },
  object_id: { holds: isObjectId, message: 'must be a record id of 24 hexadecimal digits' },
  key: { holds: text => text.length > 0, message: 'must be a key' },
  number: { holds: text => /^[1-9]\d{0,8}$/.test(text), message: 'must be a whole number from 1' },
}

/**
 * Reads the path parameters of a route's addresses: percent-decoded once (`%2F` included) and checked. Throws a Fault of 400.
 */
export function parameterReader({
  path,
  params = {},
}: Pick<Route, 'path' | 'params'>): (path: string) => Record<string, string> {
  const wanted = path.split('/').flatMap((segment, index) => {
    if (!segment.startsWith('{')) return []
    const name = segment.slice(1, -1)
    return [{ name, index, kind: params[name]! }]
  })
  return address => {
    const found: Record<string, string> = {}
    if (wanted.length === 0) return found
    const values = address.split('/')
    for (const { name, index, kind } of wanted) found[name] = readParameter(name, kind, values[index] ?? '')
    return found
  }
}

function readParameter(name: string, kind: ParameterKind, encoded: string): string {
  const text = decode(name, encoded)
  checkText(text, `/${name}`)
  const { holds, message } = kinds[kind]
  if (!holds(text)) refuseParameter(name, message)
  return text
}

// Bytes beyond ASCII reach us as Latin-1, whatever they were.
const rawAscii = /^[\x20-\x7e]*$/

function decode(name: string, encoded: string): string {
  if (!rawAscii.test(encoded)) refuseParameter(name, 'must be percent-encoded UTF-8')
  try {
    return decodeURIComponent(encoded)
  } catch {
    return refuseParameter(name, 'must be percent-encoded UTF-8')
  }
}

function refuseParameter(name: string, message: string): never {
  return fail('invalid_parameter', 'The address has a malformed part.', { details: [{ path: `/${name}`, message }] })
}
