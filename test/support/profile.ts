import {
  type ProfileFlag,
  type ProfileText,
  profileFlags,
  profileTexts,
  textFields,
} from '../../src/values/profile-fields.ts'

const each = <Name extends string, Value>(names: readonly Name[], create: (name: Name) => Value) =>
  Object.fromEntries(names.map(name => [name, create(name)])) as Record<Name, Value>

/** A value for each text of a person. A test replaces those of fields with a rule. */
export const eachText = <Value>(create: (name: ProfileText) => Value) => each(profileTexts, create)
/** A value for each flag of a person. */
export const eachFlag = <Value>(create: (name: ProfileFlag) => Value) => each(profileFlags, create)

/** The columns of a person without a profile. */
export const noProfile = { ...eachText(() => null), ...eachFlag(() => null) }

/** The kind of a text field's values. A `name` is never empty. */
export const kindOfText = (field: ProfileText): 'text' | 'name' | 'date' => {
  const { type, format } = textFields[field]
  return type === 'date' ? 'date' : format ? 'name' : 'text'
}
