import { pointer, refuse } from '../../errors.ts'

const dryRunName = 'dry_run'

/** Whether a query string asks for a dry run, and the rest of the query string. */
export type DryRunQuery = { isDryRun: boolean; queryString: string }

/**
 * Takes `dry_run` out of a query string. Throws a Fault of 400 for a misspelt name and for any value but `true` and `false`: such a
 * request would write.
 */
export function takeDryRun(queryString: string): DryRunQuery {
  const pairs = queryString.split('&')
  const given = pairs.filter(isDryRunPair)
  const [first, second] = given
  if (first === undefined) return { isDryRun: false, queryString }
  const [encodedName = '', value] = first.split('=', 2)
  const name = decoded(encodedName)!
  if (name !== dryRunName) throwInvalidDryRun(`is not the name of a parameter. Write ${dryRunName}=true`, name)
  if (second !== undefined) throwInvalidDryRun('the parameter occurs twice')
  if (value !== 'true' && value !== 'false') throwInvalidDryRun('must be true or false')
  return { isDryRun: value === 'true', queryString: pairs.filter(pair => !isDryRunPair(pair)).join('&') }
}

/** Throws a Fault of 400 for a dry run, in the query or the body, with an Idempotency-Key. */
export function throwKeyedDryRun(): never {
  const message = 'cannot be combined with an Idempotency-Key: a dry run stores nothing, so it needs none'
  return refuse('invalid_parameter', 'A dry run takes no Idempotency-Key.', {
    details: [{ path: pointer(dryRunName), message }],
  })
}

/** Throws a Fault of 400 for the query parameter `dry_run`, or a misspelt one. */
export function throwInvalidDryRun(message: string, name = dryRunName): never {
  return refuse('invalid_parameter', 'The query string has a malformed parameter.', {
    details: [{ path: pointer(name), message }],
  })
}

const isDryRunPair = (pair: string) => /^dry[-_]?run(\[|$)/i.test(decoded(pair.split('=', 1)[0]!) ?? '')

/** Undefined for a malformed name, which the binding of the query refuses where it is read. */
function decoded(name: string): string | undefined {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
