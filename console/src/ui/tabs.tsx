import type { ReactNode } from 'react'
import { Tabs as AriaTabs, Tab, TabList, TabPanel } from 'react-aria-components'
import styles from './tabs.module.css'

export type TabContent = { id: string; label: string; content: ReactNode }

type TabsProps = {
  label: string
  tabs: readonly TabContent[]
  selected?: string
  onSelect?: (id: string) => void
}

/** Several views of one thing. One of them is shown. */
export function Tabs({ label, tabs, selected, onSelect }: TabsProps) {
  return (
    <AriaTabs
      className="column gap-4"
      {...(selected !== undefined && { selectedKey: selected })}
      onSelectionChange={key => onSelect?.(String(key))}
    >
      <TabList className={styles.list} aria-label={label}>
        {tabs.map(({ id, label }) => (
          <Tab key={id} id={id} className={styles.tab}>
            {label}
          </Tab>
        ))}
      </TabList>
      {tabs.map(({ id, content }) => (
        <TabPanel key={id} id={id} className={styles.panel}>
          {content}
        </TabPanel>
      ))}
    </AriaTabs>
  )
}
