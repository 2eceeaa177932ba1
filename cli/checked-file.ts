import type { Static, TSchema } from 'typebox'
import { parseJson } from '../src/http/input/json.ts'
import { trimAndCheck } from '../src/http/input/trim.ts'
import { compile } from '../src/http/input/validate.ts'
import { defaultLimits } from '../src/process/config.ts'
import { type Detail, Fault } from '../src/values/errors.ts'

/**
 * Parses a JSON file like the body of a request: it trims texts, and refuses repeated and unknown keys. Throws the
 * error that `buildError` makes of the faults, each with its JSON Pointer.
 */
export function parseChecked<Schema extends TSchema>(
  schema: Schema,
  bytes: Buffer,
  buildError: (details: Detail[]) => Error,
): Static<Schema> {
  try {
    const parsed = trimAndCheck(parseJson(bytes, defaultLimits) as Record<string, unknown>, defaultLimits)
    compile(schema)(parsed, 'body')
    return parsed as Static<Schema>
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const { details, message } = error.refusal
    throw buildError(details.length > 0 ? details : [{ path: '', message }])
  }
}

/** The message about a file, with one line for each fault. */
export const listFaults = (name: string, details: readonly Detail[]): string =>
  [`${name} cannot be used:`, ...details.map(({ path, message }) => `  ${path || '/'} ${message}`)].join('\n')
