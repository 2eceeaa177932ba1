import { refuse } from '../../errors.ts'
import { isExternalId, isObjectId, isUuid } from '../../formats.ts'
import { withUnseen } from '../../invisible-characters.ts'
import type { ParameterKind, Route } from '../../route/route.ts'
import { checkText } from './trim.ts'

const kinds: Record<ParameterKind, { holds: (text: string) => boolean; message: string }> = {
  external_id: { holds: isExternalId, message: 'must be an external identifier of 1 to 255 characters' },
  uuid: { holds: isUuid, message: 'must be a UUID' },
  object_id: { holds: isObjectId, message: 'must be a record id of 24 hexadecimal digits' },
  key: { holds: text => text.length > 0, message: 'must be a key' },
  client_id: {
    holds: text => /^[a-z][a-z0-9_-]{0,62}\.[\w-]{1,64}$/.test(text),
    message: 'must be the id of a client',
  },
  number: { holds: text => /^[1-9]\d{0,8}$/.test(text), message: 'must be a whole number from 1' },
  count: { holds: text => /^(0|[1-9]\d{0,14})$/.test(text), message: 'must be a whole number from 0' },
  path: { holds: text => text.length > 0, message: 'must be a path' },
}

/**
 * Returns a function that reads a route's path parameters, percent-decoded once (`%2F` included). It throws a Fault of
 * 400.
 */
export function createParameterReader({
  path,
  params = {},
}: Pick<Route, 'path' | 'params'>): (path: string) => Record<string, string> {
  const parameters = path.split('/').flatMap((segment, index) => {
    if (!segment.startsWith('{')) return []
    const name = segment.slice(1, -1)
    return [{ name, index, kind: params[name]! }]
  })
  return actualPath => {
    const found: Record<string, string> = {}
    if (parameters.length === 0) return found
    const values = actualPath.split('/')
    for (const { name, index, kind } of parameters) {
      const value = kind === 'path' ? values.slice(index).join('/') : values[index]
      found[name] = readParameter(name, kind, value ?? '')
    }
    return found
  }
}

function readParameter(name: string, kind: ParameterKind, encoded: string): string {
  const text = decode(name, encoded)
  checkText(text, `/${name}`)
  const { holds, message } = kinds[kind]
  if (!holds(text)) throwMalformedParameter(name, withUnseen(message, text))
  return text
}

// Node decodes bytes beyond ASCII as Latin-1, whatever their encoding was.
const rawAscii = /^[\x20-\x7e]*$/

function decode(name: string, encoded: string): string {
  if (!rawAscii.test(encoded)) throwMalformedParameter(name, 'must be percent-encoded UTF-8')
  try {
    return decodeURIComponent(encoded)
  } catch {
    return throwMalformedParameter(name, 'must be percent-encoded UTF-8')
  }
}

function throwMalformedParameter(name: string, message: string): never {
  return refuse('invalid_parameter', 'The path has a malformed parameter.', {
    details: [{ path: `/${name}`, message }],
  })
}
