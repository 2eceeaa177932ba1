import type { Attribute, Person, PersonBody, RecordBody, StackRecord } from './wire.ts'

/** A declared attribute, as `kith codegen` writes it down. */
export type AttributeShape = { type: Attribute['type']; cardinality: Attribute['cardinality']; target?: string }

/** What an organization has declared, as `kith codegen` writes it down: the parameter of `createClient`. */
export type OrganizationSchema = {
  people: { [key: string]: AttributeShape }
  stacks: { [key: string]: { kind: 'item' | 'event'; attributes: { [key: string]: AttributeShape } } }
}

/** An organization of which nothing is known: any stack, and any attribute with any value. */
export type AnySchema = {
  people: Record<never, AttributeShape>
  stacks: { [key: string]: { kind: 'item' | 'event'; attributes: Record<never, AttributeShape> } }
}

/** The keys of an organization's stacks. */
export type StackKey<S extends OrganizationSchema> = Extract<keyof S['stacks'], string>

/** `people`, or the key of a stack: whose attributes, whose identifiers. */
export type Owner<S extends OrganizationSchema> = 'people' | StackKey<S>

/** What a relationship is given: the external identifier of its target. An integer is its decimal text. */
export type Name = string | number | { external_id: string | number }

type Plain = { text: string; number: number; boolean: boolean; date: string; datetime: string; json: unknown }
type Many<A extends AttributeShape, One> = A['cardinality'] extends 'many' ? One[] : One

// A link may lead to somebody without an external identifier, which a read shows as null.
type ReadValue<A extends AttributeShape> = A['type'] extends keyof Plain
  ? Many<A, Plain[A['type']]>
  : Many<A, string | null>
type WriteValue<A extends AttributeShape> = A['type'] extends keyof Plain
  ? Many<A, Plain[A['type']]>
  : Name | Many<A, Name>

type Undeclared = { [key: string]: unknown }

/** Attribute values as a read shows them: declared ones by their types, all others unknown. */
export type ReadValues<A extends { [key: string]: AttributeShape }> = { [K in keyof A]?: ReadValue<A[K]> } & Undeclared

/** Attribute values as a write takes them; null clears, and unlinks. */
export type WriteValues<A extends { [key: string]: AttributeShape }> = {
  [K in keyof A]?: WriteValue<A[K]> | null
} & Undeclared

/** The declared attributes of an owner. */
export type AttributesOf<S extends OrganizationSchema, O extends Owner<S>> = O extends 'people'
  ? S['people']
  : S['stacks'][O]['attributes']

/** What an owner's entities look like when they are read. */
export type EntityOf<S extends OrganizationSchema, O extends Owner<S>> = O extends 'people'
  ? Omit<Person, 'attribute_values'> & { attribute_values: ReadValues<AttributesOf<S, O>> }
  : Omit<StackRecord, 'attribute_values' | 'stack_key'> & {
      stack_key: O
      attribute_values: ReadValues<AttributesOf<S, O>>
    }

/** What an owner's entities are written with: the body of create, replace and patch. */
export type BodyOf<S extends OrganizationSchema, O extends Owner<S>> = Omit<
  O extends 'people' ? PersonBody : RecordBody,
  'attribute_values'
> & { attribute_values?: WriteValues<AttributesOf<S, O>> | null }
