import { type Attribute, type Definitions, ruleNames } from '@kith/client'
import { getRouteApi, Link } from '@tanstack/react-router'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { scopesOf } from '../entity/entities.ts'
import { OwnerName } from '../entity/entity-link.tsx'
import { useDefinitions } from '../entity/schema.ts'
import { EmptyState, Page, Section } from '../ui/page.tsx'
import { AttributeChange } from './attribute-change.tsx'
import { DefinitionPage } from './definition-page.tsx'
import { messages } from './messages.ts'
import { ruleLabels } from './rule-labels.ts'
import styles from './schema.module.css'
import { Violations } from './violations.tsx'

const route = getRouteApi('/shell/schema/attributes/$attributeId')

/** One attribute: its properties, its rules, and the stored values that break them. */
export function AttributePage() {
  const texts = useMessages(messages)
  const { attributeId } = route.useParams()
  const { definitions } = useDefinitions()
  const attribute = definitions.attributes.find(({ id }) => String(id) === attributeId)
  if (!attribute)
    return (
      <Page title={texts.attribute}>
        <EmptyState title={texts.noSuchAttribute}>
          <Link to="/schema">{texts.schema}</Link>
        </EmptyState>
      </Page>
    )
  return <AttributeView key={attribute.id} attribute={attribute} definitions={definitions} />
}

function AttributeView({ attribute, definitions: { stacks } }: { attribute: Attribute; definitions: Definitions }) {
  const texts = useMessages(messages)
  const { owner, type, target_stack, searchable, state } = attribute
  const mayReadValues = useScope(scopesOf(owner).read)
  const target = target_stack && stacks.find(({ key }) => key === target_stack)
  const isActive = state === 'active'
  return (
    <DefinitionPage
      definition={attribute}
      list={
        <Link to="/schema" search={{ tab: 'attributes', owner }}>
          <OwnerName owner={owner} />
        </Link>
      }
      facts={[
        [texts.description, attribute.description],
        [texts.type, target ? `${texts.types.stack}: ${target.name}` : texts.types[type]],
        [texts.values, texts[attribute.cardinality]],
        [texts.indexed, attribute.indexed ? texts.yes : texts.no],
        [texts.searchable, type === 'text' && (searchable ? texts.yes : texts.no)],
        [texts.rules, <Rules key="rules" attribute={attribute} />],
      ]}
      details={<IndexProgress attribute={attribute} />}
      edit={texts.editAttribute}
      form={close => <AttributeChange attribute={attribute} stacks={stacks} onClose={close} />}
      setState={state => client.schema.attributes.patch(attribute.id, { state })}
      stateHelp={isActive ? texts.archiveHelp : texts.archivedHelp}
    >
      {mayReadValues && isActive && (
        <Section title={texts.violations}>
          <Violations attribute={attribute} />
        </Section>
      )}
    </DefinitionPage>
  )
}

/** The maximum number of shown values of a list. */
const maxListed = 8

/** The rules of an attribute, each as a short text. */
export function Rules({ attribute }: { attribute: Attribute }) {
  const labels = useMessages(ruleLabels)
  const rules = ruleNames.flatMap(name => {
    const operand = attribute[name]
    if (operand === null || operand === false) return []
    const cut = Array.isArray(operand) && operand.length > maxListed ? [...operand.slice(0, maxListed), '…'] : operand
    return [labels[name].short?.(Array.isArray(cut) ? cut.join(', ') : String(cut)) ?? labels[name].name]
  })
  if (rules.length === 0) return <span className="small">—</span>
  return (
    <ul className={styles.rules}>
      {rules.map(rule => (
        <li key={rule}>
          <bdi>{rule}</bdi>
        </li>
      ))}
    </ul>
  )
}

/** The progress of the index of an attribute while kith fills it. */
function IndexProgress({ attribute: { index_state } }: { attribute: Attribute }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  if (index_state?.state !== 'filling') return null
  return (
    <p role="status">{texts.indexFilling(formats.number(index_state.indexed), formats.number(index_state.total))}</p>
  )
}
