import { creationOfAttributes } from '../attributes/attributes.ts'
import {
  changeDefinitions,
  type DefinitionCall,
  nextId,
  throwIfLimitReached,
  throwKeyTaken,
} from '../organizations/change-definitions.ts'
import { type Definitions, peopleStackId, type Stack } from '../organizations/definitions.ts'
import { creationOfStack } from '../stacks/stacks.ts'

/** The attribute with the text of a note. */
const textKey = 'text'

const keys = ['notes', 'person_notes']

const definition = { kind: 'event', name: 'Notes', label: `{${textKey}}`, erased_with: 'person' } as const

const attributes = [
  { key: 'person', name: 'Person', type: 'person' },
  { key: textKey, name: 'Text', type: 'text', searchable: true },
  { key: 'author', name: 'Author', type: 'text' },
] as const

/**
 * The stack of notes about people: its records have a text and are erased with the person. Undefined if there is none.
 */
export function findNotes({ stacks, declared }: Definitions): Stack | undefined {
  return stacks.find(({ id, erased_with }) => {
    const own = declared.get(id)
    const isAboutPeople = erased_with !== null && own?.get(erased_with)?.target_stack_id === peopleStackId
    return isAboutPeople && own?.get(textKey)?.type === 'text'
  })
}

/**
 * Returns the stack of notes about people, and creates it with its attributes if there is none. An organization with
 * another stack `notes` keeps that one, and gets `person_notes`. Throws a Fault of 409 if it has both, and of 400 if
 * the limits allow no further definition.
 */
export async function ensureNotes(call: DefinitionCall): Promise<{ notes: Stack; isNew: boolean }> {
  let isNew = false
  const after = await changeDefinitions(call, (current, at, tx) => {
    isNew = !findNotes(current)
    if (!isNew) return []
    const isFree = (key: string) => current.stacks.every(stack => stack.key !== key)
    const key = keys.find(isFree) ?? throwKeyTaken(`${keys.join(' and ')} are the keys of other stacks`)
    throwIfLimitReached('stacks', current, call.limits)
    throwIfLimitReached('attributes', current, call.limits, attributes.length)
    const id = nextId(current.stacks)
    const bodies = attributes.map(attribute => ({ owner: key, ...attribute }))
    return [
      creationOfStack(id, { key, ...definition }, at),
      ...creationOfAttributes(
        tx,
        { current, at, stackIds: new Map([[key, id]]), version: current.version + 2 },
        bodies,
      ),
    ]
  })
  return { notes: findNotes(after)!, isNew }
}
