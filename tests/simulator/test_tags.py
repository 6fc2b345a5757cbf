from __future__ import annotations

from .api_client import Api


def test_a_blank_name_is_called_existing(api: Api) -> None:
    answer = api.post("/tags", {"name": "   "})
    assert (answer.status_code, answer.json()) == (409, {"message": "Tag already exists"})


def test_a_deleted_tag_leaves_its_workflows(api: Api) -> None:
    tag = api.post("/tags", {"name": "gone"}).json()
    workflow = api.simulator.create_webhook_workflow(path="p", active=False)
    api.put(f"/workflows/{workflow['id']}/tags", [{"id": tag["id"]}])
    api.delete(f"/tags/{tag['id']}")
    assert api.get(f"/workflows/{workflow['id']}/tags").json() == []
