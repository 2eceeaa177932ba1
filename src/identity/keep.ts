import type { CurrentState } from '../entities/entity-row.ts'
import { linkedByKey } from '../entities/write/decide/attributes.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import { type Detail, pointer, refuseValues } from '../values/errors.ts'
import { attributePrefix, profileTexts } from '../values/profile-fields.ts'
import type { Keep, Side } from './merge.ts'

/** The fields that a merge lets a request choose, beside attribute values. A phone is chosen whole, and consents follow from the answers. */
const choices: readonly string[] = ['external_id', ...profileTexts.filter(name => name !== 'mobile_prefix')]

/** Reads the member `keep` of a merge. Throws a Fault of 400 with the path of each field that cannot be chosen. */
export function readKeep(
  keep: Readonly<Record<string, Side>>,
  survivor: CurrentState,
  other: CurrentState,
  definitions: Definitions,
): Keep {
  const columns = new Map<string, Side>()
  const attributes = new Map<string, Side>()
  const details: Detail[] = []
  const known = attributeKeys([survivor, other], definitions)
  for (const [name, side] of Object.entries(keep)) {
    const message = refusalOf(name, side, known, other)
    const key = name.slice(attributePrefix.length)
    if (message !== undefined) details.push({ path: pointer('keep', name), message })
    else if (name.startsWith(attributePrefix)) attributes.set(key, side)
    else columns.set(name, side)
  }
  if (details.length > 0) refuseValues(...details)
  return { columns, attributes }
}

function refusalOf(name: string, side: Side, known: ReadonlySet<string>, other: CurrentState): string | undefined {
  if (name === 'mobile_prefix') return 'is kept together with the number. Name `mobile_number`'
  if (name === 'external_id' && side === 'other' && other.row.external_id === null)
    return 'the other person has no external identifier'
  if (choices.includes(name) || (name.startsWith(attributePrefix) && known.has(name.slice(attributePrefix.length))))
    return undefined
  return `is no field that a merge can choose. Name one of ${choices.join(', ')}, or \`attribute_values.<key>\` with a declared key or one that either person has`
}

/** The attribute keys that are declared or that one of the people has. */
function attributeKeys(people: readonly CurrentState[], definitions: Definitions): ReadonlySet<string> {
  const declared = definitions.attributes.filter(({ owner_stack_id }) => owner_stack_id === peopleStackId)
  const held = people.flatMap(({ row, links }) => [
    ...Object.keys(row.attributes),
    ...linkedByKey(links, definitions).keys(),
  ])
  return new Set([...declared.map(({ key }) => key), ...held])
}
