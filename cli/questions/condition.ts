import { InvalidArgumentError } from 'commander'
import type { Filter } from '../../client/index.ts'
import { profileTexts } from '../../src/values/profile-fields.ts'
import { readJsonArgument } from '../files.ts'
import type { OptionsOf, PlainCommand } from '../kith-command.ts'

/** Adds `--where` and `--filter`. */
export const conditions = (command: PlainCommand) =>
  command
    .option(
      '--where <field=value>',
      'Only entities with this value (repeatable; all must match): last_name=Lovelace, attribute_values.total=10.',
      { parse: addPair, default: [] },
    )
    .option('--filter <json>', 'Only entities that match this filter: JSON, or @ and the name of a file, or -.')

/** Adds `--where`, `--filter` and `--segment`. */
export const conditionsOfPeople = (command: PlainCommand) =>
  conditions(command).option('--segment <key>', 'Only the people of this segment.')

export type ConditionOptions = OptionsOf<typeof conditionsOfPeople>

const texts: ReadonlySet<string> = new Set([
  ...profileTexts,
  ...['external_id', 'id', 'record_id', 'state', 'created_at', 'updated_at', '$segment'],
])

/** Adds the condition `field=value`. A value of a profile field is a text; any other value may be a JSON scalar. */
function addPair(text: string, conditions: Filter[]): Filter[] {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Give field=value.')
  const [field, value] = [text.slice(0, at).trim(), text.slice(at + 1).trim()]
  return [...conditions, { [field]: operandOf(field, value) } as Filter]
}

function operandOf(field: string, text: string): unknown {
  if (text === 'null') return null
  if (texts.has(field) && !text.startsWith('"')) return text
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? text : value
  } catch {
    return text
  }
}

/**
 * The filter that the options form together, or undefined if they name no condition. Throws a UsageError for invalid
 * JSON.
 */
export async function readCondition(
  environment: NodeJS.ProcessEnv,
  { filter, where, segment }: ConditionOptions,
): Promise<Filter | undefined> {
  const conditions = [
    ...(segment === undefined ? [] : [{ $segment: segment }]),
    ...(filter === undefined ? [] : [(await readJsonArgument(environment, '--filter', filter)) as Filter]),
    ...where,
  ]
  return conditions.length > 1 ? { $and: conditions } : conditions[0]
}
