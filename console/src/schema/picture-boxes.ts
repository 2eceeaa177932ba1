import type { Attribute, Definitions } from '@kith/client'
import { isRelationship, targetOwner } from '../entity/relationship.ts'
import type { SchemaTexts } from './messages.ts'
import type { Box } from './picture-layout.ts'

/** A row of a box: an attribute. */
type Row = { key: string; label: string; type: string; isLink: boolean }

/** People or a stack as a box of the picture. */
export type OwnerBox = Box & { name: string; subtitle: string; shown: Row[]; hidden: number }

/** A box of a large schema shows fewer attributes, so that the picture stays readable. Relationships are always shown. */
const manyBoxes = 10
const maxPlainRows = { few: 12, many: 5 }
/** About as many characters as have room in a box. */
const maxCharacters = { name: 26, label: 18, type: 14 }

const clip = (text: string, max: number) => (text.length > max ? `${text.slice(0, max - 1)}…` : text)

/** The boxes of all owners with their active attributes. */
export function boxesOf({ stacks, attributes }: Definitions, texts: SchemaTexts): OwnerBox[] {
  const max = stacks.length >= manyBoxes ? maxPlainRows.many : maxPlainRows.few
  const active = attributes.filter(({ state }) => state === 'active')
  const ownerName = (owner: string) =>
    owner === 'people' ? texts.people : (stacks.find(({ key }) => key === owner)?.name ?? owner)
  const rowOf = (attribute: Attribute): Row => {
    const isLink = isRelationship(attribute)
    const type = isLink ? ownerName(targetOwner(attribute)) : texts.types[attribute.type]
    const suffix = attribute.cardinality === 'many' ? ' […]' : ''
    return {
      key: attribute.key,
      label: clip(attribute.key, maxCharacters.label) + suffix,
      type: clip(type, maxCharacters.type),
      isLink,
    }
  }
  const boxOf = (key: string, name: string, subtitle: string): OwnerBox => {
    const own = active.filter(({ owner }) => owner === key)
    const plain = own.filter(attribute => !isRelationship(attribute))
    const shownPlain = new Set(plain.slice(0, max))
    const shown = own.filter(attribute => isRelationship(attribute) || shownPlain.has(attribute))
    const links = shown.flatMap((attribute, row) =>
      isRelationship(attribute) ? [{ row, target: targetOwner(attribute) }] : [],
    )
    const hidden = own.length - shown.length
    return {
      ...{ key, name: clip(name, maxCharacters.name), subtitle, hidden, links },
      shown: shown.map(rowOf),
      rows: shown.length + Number(hidden > 0),
    }
  }
  return [
    boxOf('people', texts.people, ''),
    ...stacks.map(({ key, name, kind }) => boxOf(key, name, clip(`${key} · ${texts.kinds[kind]}`, maxCharacters.name))),
  ]
}
