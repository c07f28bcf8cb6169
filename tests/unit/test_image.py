import pytest

from slurm_bundle.image import check_image, image_remarks, rewrite_for_enroot

DIGEST = "sha256:" + "a1" * 32


@pytest.mark.parametrize(
    ("image", "rewritten"),
    [
        ("nvcr.io/nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3"),
        ("docker://nvcr.io/nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3"),
        ("docker://ubuntu:22.04", "ubuntu:22.04"),
        ("ubuntu", "ubuntu:latest"),
        ("reg.example.com:5000/a/b:1", "reg.example.com:5000#a/b:1"),
        ("localhost:5000/a", "localhost:5000#a"),
        ("localhost/a:1", "localhost#a:1"),
        ("NVCR.IO/nvidia/a:1", "NVCR.IO#nvidia/a:1"),
        ("1.2.3.4:5000/a:1", "1.2.3.4:5000#a:1"),
        ("docker.io/library/ubuntu:24.04", "registry-1.docker.io#library/ubuntu:24.04"),
        ("docker.io/ubuntu:24.04", "registry-1.docker.io#ubuntu:24.04"),
        ("index.docker.io/org/img:1", "registry-1.docker.io#org/img:1"),
        ("me@reg.example.com/a/b:1", "me@reg.example.com#a/b:1"),
        ("me@localhost/a:1", "me@localhost#a:1"),
        ("$oauthtoken@nvcr.io/nvidia/pytorch:24.07-py3", "$oauthtoken@nvcr.io#nvidia/pytorch:24.07-py3"),
        ("docker://$oauthtoken@nvcr.io#nvidia/pytorch:24.07-py3", "$oauthtoken@nvcr.io#nvidia/pytorch:24.07-py3"),
        ("org/img__a---b.c:1_2.3-x", "org/img__a---b.c:1_2.3-x"),
        ("a/b", "a/b"),
        ("a/b:1.0", "a/b:1.0"),
        (f"img@{DIGEST}", f"img@{DIGEST}"),
        (f"reg.example.com/a/img@{DIGEST}", f"reg.example.com#a/img@{DIGEST}"),
        (f"reg.example.com:5000/img:1@{DIGEST}", f"reg.example.com:5000#img:1@{DIGEST}"),
        ("nvcr.io#nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3"),
        ("docker://nvcr.io#nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3"),
        ("/lustre/images/nccl-26.05.sqsh", "/lustre/images/nccl-26.05.sqsh"),
        ("./x.sqsh", "./x.sqsh"),
        ("~/images/x.sqsh", "~/images/x.sqsh"),
        ("/images/reg.example.com/a#b.sqsh", "/images/reg.example.com/a#b.sqsh"),
        ("/images/caf\u00e9:1@x=100%.sqsh", "/images/caf\u00e9:1@x=100%.sqsh"),
        ("/images/no-ending", "/images/no-ending"),
    ],
)
def test_an_image_is_rewritten_for_enroot_and_is_right(image: str, rewritten: str) -> None:
    assert rewrite_for_enroot(image) == rewritten
    assert rewrite_for_enroot(rewritten) == rewritten
    assert check_image(image) is None


@pytest.mark.parametrize(
    ("image", "way_out"),
    [
        ("", "give an image"),
        ("Org/Img", "write 'org/img'"),
        ("reg.example.com/Org/img:Tag", "write 'org/img'"),
        ("img:tag with space", "' '"),
        (" img:1", "write 'img:1'"),
        ("img:1\t", "write 'img:1'"),
        ("/images/a b.sqsh", "has the character ' '"),
        ("~/$USER/x.sqsh", "has the character '$'"),
        ("docker://", "is no repository"),
        ("docker:///x", "is no repository"),
        ("DOCKER://ubuntu:1", "is no registry"),
        ("docker://docker://ubuntu:1", "is no registry"),
        ("#img:1", "is no registry"),
        ("docker://#img:1", "is no registry"),
        ("me@#img:1", "is no registry"),
        ("reg.example.com#a#b:1", "is no repository"),
        ("reg_1.example.com/a:1", "is no registry"),
        ("[::1]:5000/a:1", "is no registry"),
        ("reg.example.com:65536/a:1", "is no registry"),
        ("$me@nvcr.io/a:1", "has the character '$'"),
        ("a@b@reg.example.com#img:1", "is no"),
        ("caf\u00e9:1", "is no repository"),
        ("a..b:1", "is no repository"),
        (".a/b:1", "is no registry"),
        ("img:1+cu12", "is no tag"),
        ("img:" + "x" * 129, "is no tag"),
        ("../x.sqsh", "write ./../x.sqsh or an absolute path"),
        ("X.SQSH", "write ./X.SQSH or an absolute path"),
        ("~", "give an absolute path or ~/..."),
        ("~/", "give the .sqsh file"),
        ("img\n", "write 'img'"),
        ("im\ng", "'\\n'"),
        ("img'", "take it out"),
        ("img:$TAG", "'$'"),
        ("-img", "reads as an option"),
        ("x.sqsh", "write ./x.sqsh or an absolute path"),
        ("images/x.sqsh", "write ./images/x.sqsh or an absolute path"),
        ("~someone/x.sqsh", "give an absolute path or ~/..."),
        ("/images/", "give the .sqsh file"),
        ("oras://reg.example.com/a:1", "pyxis takes no oras://"),
        ("https://reg.example.com/a:1", "pyxis takes no https://"),
        ("dockerd://ubuntu:1", "pyxis takes no dockerd://"),
        ("file:///x.sqsh", "the path of a .sqsh file"),
        ("img:", "is no tag"),
        ("img@sha256:12", "64 hexadecimal digits"),
        ("a//b", "is no repository"),
        ("reg.example.com/", "is no repository"),
    ],
)
def test_a_wrong_image_is_told_with_the_way_out(image: str, way_out: str) -> None:
    assert way_out in (check_image(image) or "")


@pytest.mark.parametrize(
    ("image", "remark"), [("ubuntu", ":latest"), ("reg.example.com:5000/a", ":latest"), (f"img@{DIGEST}", "enroot 4.0")]
)
def test_a_missing_tag_and_a_digest_get_a_remark(image: str, remark: str) -> None:
    assert [remark in text for text in image_remarks(image)] == [True]


@pytest.mark.parametrize("image", ["ubuntu:24.04", "/x.sqsh", "reg.example.com:5000/a:1", "me@reg.example.com#a/b:1"])
def test_a_plain_image_gets_no_remark(image: str) -> None:
    assert check_image(image) is None
    assert image_remarks(image) == ()


@pytest.mark.parametrize("registry", ["reg.example.com/", "reg.example.com#", "localhost:5000/", "x.example.com/a b/"])
@pytest.mark.parametrize("before", ["", "docker://", " "])
@pytest.mark.req("B19")
def test_a_login_in_an_image_is_refused_and_not_shown(before: str, registry: str) -> None:
    # GEN-07
    told = check_image(f"{before}me:pw123@{registry}img:1") or ""
    assert "a login stands in the image (not shown)" in told
    assert "pw123" not in told
