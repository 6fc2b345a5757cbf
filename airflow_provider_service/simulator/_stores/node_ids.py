"""The ids that the service gives to nodes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

# Node types that others can call, as the service knows them: triggers, without the end of their names, and other nodes.
_TRIGGERS = """
    activeCampaign acuityScheduling affinity asana autopilot awsSns bitbucket box cal calendly chargebee
    ciscoWebex clickUp convertKit copper currents customerIo emelia eventbrite facebook facebookLeadAds figma
    flow form formIo formstack getResponse github gitlab gumroad helpScout hubspot invoiceNinja jira jotForm
    keap koBoToolbox lemlist linear loneScale mailchimp mailerLite mailjet mautic microsoftTeams netlify onfleet
    payPal pipedrive postmark pushcut sendInBlue shopify slack strava stripe surveyMonkey taiga telegram theHive
    theHiveProject trello twilio typeform venafiTlsProtectCloud webflow whatsApp wise wooCommerce workable wufoo
    zendesk
"""
_OTHERS = ("form", "github", "googleChat", "telegram", "wait", "webhook", "whatsApp")
_AI = ("chat", "chatTrigger", "mcpTrigger", "microsoftAgent365Trigger")
# Those whose first versions could not be called.
_SINCE_VERSION_2 = ("emailSend", "gmail", "slack", "microsoftTeams", "microsoftOutlook", "discord")
_CALLABLE = {
    *(f"n8n-nodes-base.{name}Trigger" for name in _TRIGGERS.split()),
    *(f"n8n-nodes-base.{name}" for name in _OTHERS),
    *(f"@n8n/n8n-nodes-langchain.{name}" for name in _AI),
}


def with_ids(nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Fill in the names, ids and webhook ids that nodes lack, with new ids each time."""
    filled = []
    for node in nodes:
        kind = node["type"].rpartition(".")[2]
        copy = {"parameters": {}, "typeVersion": 1, "name": kind, **node}
        copy["id"] = copy.get("id") or str(uuid.uuid4())
        is_callable = node["type"] in _CALLABLE or (kind in _SINCE_VERSION_2 and copy["typeVersion"] >= 2)
        if is_callable and not copy.get("webhookId"):
            copy["webhookId"] = str(uuid.uuid4())
        filled.append(copy)
    return filled
