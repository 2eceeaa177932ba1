import type { Definitions } from '@kith/client'
import { attributesOf } from '../entity/schema.ts'

/** The attribute that has the text of a note. */
const textKey = 'text'

/** The stack of notes, as POST /v1/schema/notes finds it: erased with the person, and with a text. Undefined if there is none yet. */
export const notesOf = (definitions: Definitions) =>
  definitions.stacks.find(({ key, erased_with }) => {
    const text = attributesOf(definitions, key).get(textKey)
    return erased_with !== null && text?.type === 'text' && text.state === 'active'
  })
